"""Work side by side: in order, on other threads, never waiting for itself."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

from tacit.base.threads import cores, side_by_side, threads


def test_answers_come_in_order_from_several_threads() -> None:
    gate = threading.Barrier(2, timeout=20)

    def work(i: int) -> tuple[int, str]:
        gate.wait()  # two at a time, or it would never open
        return i * i, threading.current_thread().name

    found = side_by_side(work, range(4), workers=2)
    assert [square for square, _ in found] == [0, 1, 4, 9]
    assert len({name for _, name in found}) == 2
    assert threading.current_thread().name not in {name for _, name in found}


def test_one_worker_is_this_thread() -> None:
    assert set(side_by_side(lambda _: threading.get_ident(), range(3), 1)) == {
        threading.get_ident()
    }


def test_work_inside_work_does_not_wait_for_itself() -> None:
    def outer(i: int) -> list[int]:
        return side_by_side(lambda j: 10 * i + j, range(2), 2)

    assert side_by_side(outer, range(3), 2) == [[0, 1], [10, 11], [20, 21]]


def test_a_process_keeps_to_its_share() -> None:
    """In a process of its own: the share holds until its end."""
    script = (
        "import torch\n"
        "from tacit.base.threads import cores, keep_to\n"
        "keep_to(1)\n"
        "print(cores(), torch.get_num_threads())\n"
        "keep_to(1000)\n"
        "print(cores())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["1", "1", str(cores())]


def test_the_loop_uses_one_core_for_each_operation() -> None:
    with threads(2):
        assert side_by_side(lambda _: torch.get_num_threads(), range(2), 1) == [1, 1]
        assert torch.get_num_threads() == 2


def test_work_inside_work_keeps_the_threads_that_it_was_given() -> None:
    def outer(count: int) -> list[int]:
        with threads(count):
            return side_by_side(lambda _: torch.get_num_threads(), range(1), 2)

    assert side_by_side(outer, [1, 3], 2) == [[1], [3]]


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda i: 1 // i, (1, 0), 2)


def test_a_worker_uses_one_thread_and_the_callers_number_stays() -> None:
    before = torch.get_num_threads()
    assert side_by_side(lambda _: torch.get_num_threads(), range(4), 2) == [1] * 4
    # alone as beside others: the bits of a piece do not depend on what else there is to do
    assert side_by_side(lambda _: torch.get_num_threads(), [0], 2) == [1]
    assert torch.get_num_threads() == before
    assert cores() >= 1


def test_a_worker_may_use_more_for_a_while() -> None:
    def seen(count: int) -> tuple[int, int]:
        with threads(count):
            inside = torch.get_num_threads()
        return inside, torch.get_num_threads()

    assert side_by_side(seen, [0, 1, 3], 2) == [(1, 1), (1, 1), (3, 1)]
