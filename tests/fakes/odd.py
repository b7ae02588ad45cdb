"""A third party's paper whose exhibits fail, each in its own way."""

from fakes.toy import Toy
from tacit.lab.exhibit import Exhibit, Paper

PAPER = Paper("odd2021", "Odd things", "C. Odd", 2021, "@article{odd2021}")
EXHIBITS = tuple(
    Exhibit(
        f"odd2021.{name}",
        f"An exhibit that {name}",
        "Section 0",
        "It fails.",
        {"smoke": Toy(), "laptop": Toy(), "paper": Toy()},
        code,
    )
    for name, code in {
        "raises": "fakes.odd_raises",
        "absent": "fakes.nowhere.deep",
        "empty": "fakes.odd",
    }.items()
)
