"""Progress on stderr: bars on a terminal, a line now and then in a log, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

LOG_INTERVAL = 20.0  # seconds: a log wants a sign of life, not a film


@runtime_checkable
class Progress(Protocol):
    """Where steps are announced (a bar on stderr, or nowhere)."""

    def track(
        self, label: str, total: int, size: int = 1
    ) -> AbstractContextManager[Callable[[], None]]:
        """A context whose value is called once after each finished step, which is `size` of the total."""


class Silent:
    """Progress that nobody watches."""

    @contextmanager
    def track(self, label: str, total: int, size: int = 1) -> Iterator[Callable[[], None]]:  # noqa: ARG002
        """Count nothing."""
        yield lambda: None


class Lines:
    """`id: label n/total, 29,000/s, 40 s left` in a log, at most once in `LOG_INTERVAL` seconds."""

    def __init__(
        self, id: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._id = id
        self._say = say
        self._clock = clock
        self._last = clock()

    @contextmanager
    def track(self, label: str, total: int, size: int = 1) -> Iterator[Callable[[], None]]:
        """Say how far it is, how fast, and for how long still, when it has been quiet for long enough."""
        done, began = 0, self._clock()

        def advance() -> None:
            nonlocal done
            done += size
            if self._clock() - self._last >= LOG_INTERVAL:
                self._last = self._clock()
                speed = done / max(self._last - began, 1e-9)
                left = f", {in_words((total - done) / speed)} left" if done < total else ""
                rate = f", {speed:,.0f}/s" if size > 1 else ""
                self._say(f"{self._id}: {label} {done:,}/{total:,}{rate}{left}")

        yield advance


class Bars:
    """A bar for each step under way, with the exhibit, the step and the time left."""

    def __init__(self, id: str, live: RichProgress) -> None:
        self._id = id
        self._live = live

    @contextmanager
    def track(self, label: str, total: int, size: int = 1) -> Iterator[Callable[[], None]]:
        """Show a bar as long as the step lasts; where a step is many, also how many are done in a second."""
        task = self._live.add_task(label, total=total, exhibit=self._id)

        def advance() -> None:
            self._live.advance(task, size)
            speed = self._live.tasks[self._live.task_ids.index(task)].speed
            if size > 1 and speed:
                self._live.update(task, description=f"{label}, {speed:,.0f}/s")

        try:
            yield advance
        finally:
            self._live.remove_task(task)


@contextmanager
def on_stderr(id: str) -> Iterator[Progress]:
    """The progress that suits stderr: bars on a terminal, sparing lines elsewhere."""
    with watched() as progress_of:
        yield progress_of(id)


@contextmanager
def watched() -> Iterator[Callable[[str], Progress]]:
    """The same for several at a time: the progress of each id."""
    if not sys.stderr.isatty():
        yield lambda id: Lines(id, lambda line: print(line, file=sys.stderr, flush=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("[bold]{task.fields[exhibit]}"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as live:
        yield lambda id: Bars(id, live)


def in_words(seconds: float) -> str:
    """50 s, 4 min, 2.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
