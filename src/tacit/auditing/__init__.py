"""How robust is this classifier? One record for any model: intervals, flags, directions, averaging."""

from tacit.auditing.audit import audit
from tacit.auditing.averaging import Averaging
from tacit.auditing.record import AuditRecord, Comparison, UniversalAt, compare
from tacit.auditing.subject import load_model

__all__ = [
    "AuditRecord",
    "Averaging",
    "Comparison",
    "UniversalAt",
    "audit",
    "compare",
    "load_model",
]
