"""Plain mathematics is set as people write it, and what is not mathematics is left alone."""

import pytest

from tacit.report.typeset import typeset


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("F^(p) >= sqrt(2)/2", "F<sup>(p)</sup> ≥ √2/2"),
        ("sqrt(q/(1+q)), q = K2^(1-2/p)", "√(q/(1+q)), q = K2<sup>(1-2/p)</sup>"),
        ("alpha -> 0, mu_k <= sigma^2", "α → 0, μ<sub>k</sub> ≤ σ<sup>2</sup>"),
        ("f_1 = F and f_dec != f_avg", "f<sub>1</sub> = F and f<sub>dec</sub> ≠ f<sub>avg</sub>"),
        ("||w|| <w, x> e^-4", "‖w‖ ⟨w, x⟩ e<sup>-4</sup>"),
        ("<= 1e-06, 2.5e+09, 0x1e5", "≤ 10<sup>-6</sup>, 2.5·10<sup>9</sup>, 0x1e5"),
        ("1.1e-16 ± 1e-17", "1.1·10<sup>-16</sup> ± 10<sup>-17</sup>"),
        ("the radius", "The radius"),
        ("d0 of length", "d0 of length"),
        ("max_steps is a setting", "max_steps is a setting"),
        ("multiple betas", "Multiple betas"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("", ""),
    ],
)
def test_typeset(text: str, html: str) -> None:
    assert str(typeset(text)) == html
