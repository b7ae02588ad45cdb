"""Where a run comes from: code, libraries, kind of device, time. It names no machine."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from typing import Any

from tacit.lab.order import PACKAGE, Order
from tacit.version import __version__


def now() -> str:
    """The time, in UTC, as ISO 8601 has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe(
    order: Order, *, code: str, started: str, seconds: float, resumed: bool
) -> dict[str, Any]:
    """The provenance of a finished run.

    `code` is the digest of the exhibit's code when the run began; `seconds` is the wall time of the session that
    completed it; `resumed` says that parts of it come from an earlier, interrupted one.
    """
    import numpy
    import torch
    import xarray

    return {
        "id": order.exhibit.id,
        "order": order.digest,
        "version": __version__,
        "code": code,
        "commit": commit(),
        "scale": order.scale,
        "seed": order.seed,
        "device": order.device,
        "accelerator": torch.cuda.get_device_name() if order.device == "cuda" else None,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "xarray": xarray.__version__,
        "started": started,
        "seconds": round(seconds, 3),
        "resumed": resumed,
        "command": order.command,
    }


def commit() -> str | None:
    """The commit of tacit's source, `-dirty` where files were changed; None outside a checkout."""
    root = PACKAGE.parents[1]
    if PACKAGE.parent.name != "src" or not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    # asking must not write: another git command may be at work in the same checkout
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        answer = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
