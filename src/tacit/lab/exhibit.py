"""An exhibit: one figure, table, theorem or algorithm of a paper, made executable.

A paper's module is its catalogue: `PAPER` and `EXHIBITS`, with configs at three scales. The code of
an exhibit is another module, named by its dotted path and imported when it is first run, so that
`tacit list` never waits for torch. That module has

    run(config, bench) -> Outcome          what is computed and claimed
    draw(data, config) -> Figure           the figure, theory and measurement together

and may have

    animate(data, config) -> Iterable[Figure]      the frames of an animation, in order
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from tacit.errors import CallError, RunError
from tacit.lab.claims import Claim

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from tacit.lab.bench import Bench

Scale = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Paper:
    """A paper and how to cite it."""

    key: str
    title: str
    authors: str
    year: int
    bibtex: str


@runtime_checkable
class Savable(Protocol):
    """A net that can be written: its tensors, and the metadata that rebuild it."""

    def state(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Tensors (`w`, `v`, `b`) and metadata (`kind`, `p`, ...)."""


@dataclass(frozen=True)
class Outcome:
    """What a run found: labelled arrays, claims, and the nets worth keeping."""

    data: xr.Dataset
    claims: tuple[Claim, ...]
    nets: Mapping[str, Savable] = field(default_factory=dict)


@runtime_checkable
class ExhibitCode(Protocol):
    """What the module of an exhibit offers."""

    def run(self, config: Any, bench: Bench) -> Outcome:
        """Compute and judge."""

    def draw(self, data: xr.Dataset, config: Any) -> Figure:
        """The figure, from what `run` found."""


@runtime_checkable
class Animated(Protocol):
    """What a module of an exhibit that also moves offers besides."""

    def animate(self, data: xr.Dataset, config: Any) -> Iterable[Figure]:
        """The frames; each may be the same figure, changed: it is drawn before the next is asked for.

        Where artists of it are marked `animated`, only they are drawn anew, above the rest: ten times faster.
        """


@dataclass(frozen=True)
class Exhibit:
    """`id` is `paper.name`; `where` the section; `claim` one line; `scales` the three configs.

    `code` is the module with `run` and `draw`, by default that of tacit's own folder of this paper and name.
    """

    id: str
    title: str
    where: str
    claim: str
    scales: Mapping[Scale, Any]
    code: str = ""

    def __post_init__(self) -> None:
        if not self.code:
            home = f"tacit.papers.{self.paper}.{self.name.replace('.', '_')}.exhibit"
            object.__setattr__(self, "code", home)
        if not self.paper or not self.name:
            raise CallError(f"exhibit id {self.id!r} must read 'paper.name', as in 'min2024.thm1'")
        if set(self.scales) != set(SCALES):
            raise CallError(f"exhibit {self.id} needs a config for each of {', '.join(SCALES)}")

    @property
    def paper(self) -> str:
        """What stands before the first dot."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """What stands after the first dot (`thm4.5` in `li2025.thm4.5`)."""
        return self.id.partition(".")[2]

    def load(self) -> ExhibitCode:
        """Import the code; whatever goes wrong there is told in one line."""
        try:
            module = importlib.import_module(self.code)
        except (Exception, SystemExit) as error:  # a third party's module may raise anything
            raise RunError(
                f"exhibit {self.id} is broken: importing {self.code} failed "
                f"({type(error).__name__}: {error}); mend or uninstall that package"
            ) from error
        missing = [name for name in ("run", "draw") if not callable(getattr(module, name, None))]
        if missing:
            raise RunError(
                f"exhibit {self.id} is broken: {self.code} has no function "
                f"{' and '.join(missing)}; mend or uninstall that package"
            )
        return cast(ExhibitCode, module)


def exhibits_of(paper: str, *folders: str) -> tuple[Exhibit, ...]:
    """The exhibits in these folders of a paper's package: the `EXHIBITS` of each folder's `settings`."""
    found = (importlib.import_module(f"{paper}.{folder}.settings") for folder in folders)
    return tuple(exhibit for settings in found for exhibit in settings.EXHIBITS)
