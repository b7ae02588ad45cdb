"""Independent pieces of work on several cores, by threads: torch's operations let others run meanwhile.

Two threads within each operation wait for each other at its end, which is slow where cores are shared (seen:
eight times slower than one). Here each thread has a piece of its own and uses one core for it.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")

NAME = "tacit-worker"
_kept: int | None = None  # the cores this process was told to keep to


def cores() -> int:
    """How many cores this process may use."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return here if _kept is None else min(here, _kept)


def keep_to(count: int) -> None:
    """This process uses so many cores from now on, in its operations and by its threads: others have the rest."""
    global _kept  # a process has one share of the machine
    _kept = count
    torch.set_num_threads(count)


def side_by_side(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """work(item) for each item, in order, by that many threads; 1 is a plain loop in this thread.

    An item has one core, be it alone, beside others or in the loop, and so the same bits. Threads gain only where
    an operation takes much longer than 50 microseconds: below, they wait for Python's lock, and a loop is faster.
    """
    todo = list(items)
    # a worker that waited for the others would block them: it does its part alone
    inside = threading.current_thread().name.startswith(NAME)
    if inside:
        return [work(item) for item in todo]
    if workers <= 1:
        with threads(1):
            return [work(item) for item in todo]
    return list(pool(workers).map(work, todo))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """This thread's operations use that many cores, at least one, and then as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, count))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def pool(workers: int) -> ThreadPoolExecutor:
    """Threads that each use one core for an operation; kept, for a training asks for them at every step."""
    return ThreadPoolExecutor(workers, NAME, initializer=torch.set_num_threads, initargs=(1,))
