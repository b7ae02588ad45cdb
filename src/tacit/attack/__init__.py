"""How a net is broken."""

from tacit.attack.rays import first_crossing

__all__ = ["first_crossing"]
