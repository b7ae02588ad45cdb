"""A paper of the house."""

from fakes.toy import Toy
from tacit.lab.exhibit import Exhibit, Paper

PAPER = Paper("home2019", "At home", "A. Host", 2019, "@article{home2019}")
EXHIBITS = (
    Exhibit(
        "home2019.only",
        "The only one",
        "Section 1",
        "There is one.",
        {"smoke": Toy(), "laptop": Toy(), "paper": Toy()},
        "fakes.toy_mean",
    ),
)
