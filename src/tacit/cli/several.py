"""Exhibits side by side, one on each core, each in a process of its own; what they say comes to this one."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, redirect_stdout
from itertools import count
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, Any

from tacit.base.progress import Progress, watched
from tacit.base.threads import keep_to
from tacit.cli.lines import complain
from tacit.errors import RunError
from tacit.lab.exhibit import Exhibit
from tacit.lab.record import RunRecord
from tacit.lab.runner import run_exhibit
from tacit.report.publish import publish_run

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Message = tuple[str, str, Any]
"""Of which exhibit, what happens (`begins`, `step`, `ends`, `says`), and more about it."""

KILLED = (
    "a process ended before its exhibit did, perhaps for want of memory: the same command goes on"
)
_post: Queue[Message | None]  # of a worker: where it says what happens


def side_by_side(
    exhibits: Sequence[Exhibit], configs: Sequence[Any], workers: int, **order: Any
) -> Iterator[RunRecord | RunError]:
    """The runs in order, each once it is there, or why there is none."""
    context = get_context("spawn")  # a fork would share torch's threads, and hang
    post: Queue[Message | None] = context.Queue()
    reader = threading.Thread(target=_tell, args=(post,))
    reader.start()
    pool = ProcessPoolExecutor(workers, context, _begin, (post, os.getpid()))
    try:
        coming = [
            pool.submit(_one, exhibit, config, order)
            for exhibit, config in zip(exhibits, configs, strict=True)
        ]
        for future in coming:
            try:
                yield future.result()
            except BrokenProcessPool:
                raise RunError(KILLED) from None
            except RunError as error:
                yield error
    except BaseException:  # also an interrupt that came to this process alone
        for child in active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        post.put(None)
        reader.join()


def _begin(post: Queue[Message | None], parent: int) -> None:
    """A worker's first act: to keep to one core, and to end when the command ends."""
    global _post  # a pool hands its initializer nothing else to keep it in
    _post = post
    keep_to(1)

    def stay() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)  # killed without a word: its workers must not go on alone

    threading.Thread(target=stay, daemon=True).start()


def _one(exhibit: Exhibit, config: Any, order: dict[str, Any]) -> RunRecord:
    """One exhibit, in a worker."""
    with redirect_stdout(sys.stderr):
        return run_exhibit(
            exhibit,
            config,
            progress=Relayed(exhibit.id),
            publish=publish_run,
            say=lambda line: _post.put((exhibit.id, "says", line)),
            **order,
        )


class Relayed:
    """Progress that is shown by another process."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._numbers = count()

    @contextmanager
    def track(self, label: str, total: int, size: int = 1) -> Iterator[Callable[[], None]]:
        """Tell where it is shown."""
        number = next(self._numbers)
        _post.put((self._id, "begins", (number, label, total, size)))
        try:
            yield lambda: _post.put((self._id, "step", number))
        finally:
            _post.put((self._id, "ends", number))


def _tell(post: Queue[Message | None]) -> None:
    """Show what the workers say, until the end."""
    with watched() as progress_of:
        shown: dict[str, Progress] = {}
        steps: dict[tuple[str, int], tuple[ExitStack, Callable[[], None]]] = {}
        for id, what, more in iter(post.get, None):
            if what == "says":
                complain(more)
            elif what == "begins":
                number, *what_of = more
                progress, stack = shown.setdefault(id, progress_of(id)), ExitStack()
                steps[id, number] = stack, stack.enter_context(progress.track(*what_of))
            elif what == "step":
                steps[id, more][1]()
            else:
                steps.pop((id, more))[0].close()
