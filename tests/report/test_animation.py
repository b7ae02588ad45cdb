"""An exhibit that also moves: one more file in its run folder, shown in its report."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import fakes.toy_mean
from contract import check_folder
from tacit import api
from tacit.errors import RunError

FOLDER = Path("runs") / "toy2020.mean"


def turning(data: Any, config: Any) -> Iterator[Figure]:
    """A hand of a clock over a dial that stands still."""
    figure = Figure(figsize=(2, 2))
    axes = figure.subplots()
    axes.set_title("dial")
    (hand,) = axes.plot([0, 1], [0, 0], animated=True)
    for height in (0.0, 0.5, 1.0, 1.0):
        hand.set_ydata([0, height])
        axes.set_ylim(0, 1)
        yield figure


def run(**changes: Any) -> Any:
    return api.run("toy2020.mean", **{"scale": "smoke", "out": Path("runs"), **changes})


@pytest.fixture(autouse=True)
def moving(only_fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes.toy_mean, "animate", turning, raising=False)


def test_the_animation_lies_in_the_folder_and_in_the_report() -> None:
    record = run()
    check_folder(FOLDER, smoke=True)
    assert "animation.gif" in record.provenance["files"]
    content = (FOLDER / "animation.gif").read_bytes()
    with Image.open(FOLDER / "animation.gif") as image:
        assert image.size == (200, 200)
        assert image.info["loop"] == 0
        assert 3 <= image.n_frames <= 4  # equal frames may be one that lasts longer
        image.seek(image.n_frames - 1)
        assert image.info["duration"] >= 2500
    page = (FOLDER / "report.html").read_text(encoding="utf-8")
    assert base64.b64encode(content).decode() in page
    assert 'href="animation.gif"' in page


def test_the_same_data_give_the_same_animation_and_a_complete_run_is_reported_again() -> None:
    first = run()
    assert run() == first
    content = (FOLDER / "animation.gif").read_bytes()
    assert (run(out=Path("others")).folder / "animation.gif").read_bytes() == content


def test_what_is_marked_as_animated_is_drawn_as_if_all_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run()
    quick = frames(FOLDER)

    def plainly(data: Any, config: Any) -> Iterator[Figure]:
        for figure in turning(data, config):
            for line in figure.axes[0].lines:
                line.set_animated(False)
            yield figure
            for line in figure.axes[0].lines:
                line.set_animated(True)

    monkeypatch.setattr(fakes.toy_mean, "animate", plainly)
    run(fresh=True)
    for one, other in zip(quick, frames(FOLDER), strict=True):
        apart = np.abs(np.frombuffer(one, np.uint8).astype(int) - np.frombuffer(other, np.uint8))
        assert (apart > 30).mean() < 0.01, "but for what lies above a line"


def test_a_damaged_animation_is_noticed_and_fresh_heals_it() -> None:
    run()
    (FOLDER / "animation.gif").unlink()
    with pytest.raises(RunError, match=r"damaged: animation\.gif is missing"):
        run()
    run(fresh=True)
    (FOLDER / "provenance.json").write_text("[]")
    run(fresh=True)  # where the mark cannot tell, the animation is still known as a file of a run
    check_folder(FOLDER, smoke=True)


def test_without_frames_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes.toy_mean, "animate", lambda data, config: ())
    with pytest.raises(RunError, match=r"toy2020\.mean is broken: its animation has no frames"):
        run()
    assert not FOLDER.exists()


def test_an_exhibit_without_one_has_no_such_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fakes.toy_mean, "animate")
    run()
    assert not (FOLDER / "animation.gif").exists()
    assert "In motion" not in (FOLDER / "report.html").read_text(encoding="utf-8")


def frames(folder: Path) -> list[bytes]:
    """The pixels of each frame."""
    with Image.open(folder / "animation.gif") as image:
        out = []
        for index in range(image.n_frames):
            image.seek(index)
            out.append(image.convert("RGB").tobytes())
    return out
