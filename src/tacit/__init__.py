"""tacit: a laboratory for the implicit bias of gradient training, and for the robustness it buys.

    import tacit

    result = tacit.run("min2024.thm1", scale="laptop", seed=0, K=4)
    result.claims       # what the paper states, what was measured, the verdict
    result.data         # an xarray Dataset with named dimensions
    result.folder       # figure, report, nets, provenance

    record = tacit.audit(model, (x, y), norm=2, radii=(0.1, 0.2))
    record.curve        # robust accuracy between a certificate and an attack

Nothing heavy is imported until it is used: `import tacit` costs milliseconds, torch costs seconds.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.api import exhibits, run
    from tacit.auditing import AuditRecord, audit
    from tacit.estimator import PolyReLUClassifier
    from tacit.lab.record import RunRecord

# where each public name lives; rooms that are asked for by name are found without a table
_HOMES = {
    "run": "tacit.api",
    "exhibits": "tacit.api",
    "audit": "tacit.auditing",
    "RunRecord": "tacit.lab.record",
    "AuditRecord": "tacit.auditing",
    "PolyReLUClassifier": "tacit.estimator",
}

__all__ = [
    "AuditRecord",
    "PolyReLUClassifier",
    "RunRecord",
    "__version__",
    "audit",
    "exhibits",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import the public name, or the room of the house, that is asked for (PEP 562)."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"tacit.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tacit.{name}":
                raise
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *_HOMES})
