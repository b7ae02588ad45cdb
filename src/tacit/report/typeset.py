"""Plain mathematics made readable: `F^(p) >= sqrt(2)/2` is typed in claims, and set on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_NAMES = (
    "alpha beta gamma delta eps epsilon eta theta kappa lambda mu nu xi "
    "rho sigma tau phi psi omega Delta"
)
_GREEK = dict(zip(_NAMES.split(), "αβγδεεηθκλμνξρστφψωΔ", strict=True))
# in this order, on text that is already escaped: an index is found before its letter turns Greek
_RULES: tuple[tuple[str, str], ...] = (
    (r"-&gt;", "→"),
    (r"&gt;=", "≥"),
    (r"&lt;=", "≤"),
    (r"!=", "≠"),
    (r"\|\|", "‖"),
    (r"&lt;([\w^*]+), ?([\w^*]+)&gt;", r"⟨\1, \2⟩"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(", "√("),
    (r"(?<![\w.])1e([+-]?)0*(\d+)\b", r"10^\1\2"),
    (r"\b(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b", r"\1·10^\2\3"),
    (r"\^\+", "^"),
    (r"\^(\([^()]*\)|-?[\w*]+)", r"<sup>\1</sup>"),
    (rf"\b([A-Za-z]|{'|'.join(_GREEK)})_(\w+)", r"\1<sub>\2</sub>"),
)


def typeset(text: str) -> Markup:
    """The text as safe HTML, with roots, exponents, indices and Greek letters, and a capital."""
    from markupsafe import Markup, escape

    html = str(escape(text))
    for pattern, replacement in _RULES:
        html = re.sub(pattern, replacement, html)
    html = re.sub(rf"\b({'|'.join(_GREEK)})(?=\b|\d)", lambda found: _GREEK[found[1]], html)
    # a sentence begins with a capital; a formula (f, d0, f_1) stays as it is
    return Markup(re.sub(r"^[a-z](?=[a-z]+[ ,:-])", lambda found: found[0].upper(), html))
