"""Progress: bars where somebody watches, sparing lines in a log, nothing in Python."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import TextColumn

from tacit.base.progress import LOG_INTERVAL, Bars, Lines, Silent, in_words, on_stderr
from tacit.lab.bench import Bench
from tacit.lab.parts import DiskParts


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_show_exhibit_step_and_count(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", screen)
    with on_stderr("toy2020.mean") as progress, progress.track("sweep", 2) as advance:
        assert callable(advance)
    assert "toy2020.mean" in screen.getvalue()
    assert "sweep" in screen.getvalue()
    assert "0/2" in screen.getvalue()


def test_a_finished_step_leaves_no_bar() -> None:
    live = RichProgress(TextColumn("{task.description}"), console=Console(file=io.StringIO()))
    bars = Bars("toy2020.mean", live)
    with bars.track("outer", 2), bars.track("inner", 3):
        assert [task.description for task in live.tasks] == ["outer", "inner"]
    assert live.tasks == []


def test_a_log_gets_a_line_now_and_then() -> None:
    log: list[str] = []
    time = [0.0]
    lines = Lines("toy2020.mean", log.append, clock=lambda: time[0])
    with lines.track("sweep", 3) as advance:
        advance()
        time[0] += LOG_INTERVAL
        advance()
        advance()
    assert log == ["toy2020.mean: sweep 2/3, 10 s left"]


def test_a_step_of_many_tells_how_many_in_a_second() -> None:
    log: list[str] = []
    time = [0.0]
    lines = Lines("toy2020.mean", log.append, clock=lambda: time[0])
    with lines.track("images", 128_000, 128) as advance:
        for _ in range(250):
            time[0] += 0.1
            advance()
    assert log == ["toy2020.mean: images 25,600/128,000, 1,280/s, 80 s left"]
    live = RichProgress(
        TextColumn("{task.description}"),
        console=Console(file=io.StringIO()),
        get_time=lambda: time[0],
    )
    with Bars("toy2020.mean", live).track("images", 1280, 128) as advance:
        for _ in range(3):
            time[0] += 0.1
            advance()
        assert live.tasks[0].completed == 384
        assert live.tasks[0].description == "images, 1,280/s"


@pytest.mark.parametrize(("seconds", "words"), [(50, "50 s"), (240, "4 min"), (9000, "2.5 h")])
def test_times_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_a_short_run_logs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with on_stderr("toy2020.mean") as progress, progress.track("sweep", 1) as advance:
        advance()
    assert capsys.readouterr().err == ""


def test_steps_of_a_bench(tmp_path) -> None:
    bench = Bench("smoke", 0, "cpu", Silent(), DiskParts(tmp_path))
    assert list(bench.steps(range(3), "sweep")) == [0, 1, 2]


def test_a_bench_tells_what_there_is_to_tell(tmp_path) -> None:
    heard: list[str] = []
    bench = Bench("smoke", 0, "cpu", Silent(), DiskParts(tmp_path), heard.append)
    bench.tell(None)
    for line in ("few points", "few points", "no points"):
        bench.tell(line)
    assert heard == ["warning: few points", "warning: no points"]
    Bench("smoke", 0, "cpu", Silent(), DiskParts(tmp_path)).tell("nobody listens")
