"""The user's cache: what can be had again, downloads, features and trained nets."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache, where downloads go: the rule of pooch.os_cache("tacit"), without pooch."""
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(local) / "tacit" / "tacit" / "Cache"
    stated = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(stated):  # the XDG rule: anything else is as good as unset
        return Path(stated) / "tacit"
    return (
        home.joinpath(*(("Library", "Caches") if sys.platform == "darwin" else (".cache",)))
        / "tacit"
    )


def stated_folder(variable: str) -> Path | None:
    """The folder that an environment variable names, if it is set."""
    stated = os.environ.get(variable, "")
    return Path(stated).expanduser() if stated.strip() else None
