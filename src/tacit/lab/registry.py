"""Which papers and exhibits there are: tacit's own, and other packages' through an entry point.

A paper is anything with `PAPER` and `EXHIBITS`: a module in `tacit/papers`, or what an entry point
of the group `tacit.exhibits` loads to (one such thing, or an iterable of them). An entry point is
named after its paper, so that a broken one can be named when its exhibits are asked for. What is
broken is remembered with its reason and never disturbs the rest.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tacit.errors import CallError, RunError
from tacit.lab.exhibit import Exhibit, Paper

GROUP = "tacit.exhibits"
HOME = "tacit.papers"


@dataclass(frozen=True)
class Broken:
    """A source of exhibits that could not be used, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        """The line a user sees."""
        return f"exhibits of {self.name!r} are left out: {self.reason}"


@dataclass(frozen=True)
class Catalogue:
    """All papers by key and all exhibits by id, in the order in which they are listed."""

    papers: dict[str, Paper] = field(default_factory=dict)
    exhibits: dict[str, Exhibit] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)

    def find(self, id: str) -> Exhibit:
        """The exhibit of that id; otherwise a `CallError` that says which ids are near."""
        if id in self.exhibits:
            return self.exhibits[id]
        if id in self.papers:
            raise CallError(f"{id} is a paper: `tacit verify {id}` runs all of it")
        raise self._missing("exhibit", id, list(self.exhibits))

    def paper(self, key: str) -> Paper:
        """The paper of that key; otherwise a `CallError` that says which keys are near."""
        if key in self.papers:
            return self.papers[key]
        if key in self.exhibits:
            raise CallError(f"{key} is an exhibit: `tacit run {key}` runs it")
        raise self._missing("paper", key, list(self.papers))

    def of_paper(self, key: str) -> list[Exhibit]:
        """The exhibits of one paper."""
        return [exhibit for exhibit in self.exhibits.values() if exhibit.paper == key]

    def _missing(self, kind: str, asked: str, known: list[str]) -> CallError | RunError:
        for broken in self.broken:
            if broken.name == asked.partition(".")[0]:
                return RunError(f"{asked} cannot be had: {broken}; mend or uninstall that package")
        # thm1 alone is a common slip for min2024.thm1
        near = [one for one in known if one.partition(".")[2] == asked]
        near += difflib.get_close_matches(asked, known, n=4)
        hint = f"near: {', '.join(near)}; " if near else ""
        return CallError(f"there is no {kind} {asked!r}; {hint}`tacit list` shows all")


@cache
def catalogue() -> Catalogue:
    """Everything that is installed here, looked up once."""
    found = Catalogue()
    for name, load in (*_own(), *_foreign()):
        try:
            sources = load()
            # several papers may come from one entry point; a module is one source, not an iterable
            for source in sources if isinstance(sources, Iterable) else (sources,):
                _add(found, source)
        except (Exception, SystemExit) as error:  # a third party's import may raise anything
            found.broken.append(Broken(name, f"{type(error).__name__}: {error}"))
    return found


def _own() -> Iterator[tuple[str, Callable[[], Any]]]:
    home = importlib.import_module(HOME)
    for module in pkgutil.iter_modules(home.__path__):
        if not module.name.startswith("_"):
            yield module.name, partial(importlib.import_module, f"{HOME}.{module.name}")


def _foreign() -> Iterator[tuple[str, Callable[[], Any]]]:
    from importlib.metadata import entry_points  # slow to import: `tacit --help` does without it

    for point in entry_points(group=GROUP):
        yield point.name, point.load


def _add(found: Catalogue, source: Any) -> None:
    """Take up one paper, whole or, if anything about it is wrong, not at all."""
    paper, exhibits = source.PAPER, tuple(source.EXHIBITS)
    if not isinstance(paper, Paper) or not all(isinstance(one, Exhibit) for one in exhibits):
        raise TypeError("PAPER must be a tacit.lab.exhibit.Paper, EXHIBITS hold Exhibits")
    new: dict[str, Exhibit] = {}
    for exhibit in exhibits:
        if exhibit.paper != paper.key:
            raise ValueError(f"exhibit {exhibit.id} is not of the paper {paper.key}")
        if exhibit.id in found.exhibits or exhibit.id in new:
            raise ValueError(f"exhibit {exhibit.id} is defined already")
        new[exhibit.id] = exhibit
    found.papers.setdefault(paper.key, paper)
    found.exhibits.update(new)
