"""An exhibit's animation as a GIF: what every browser, mail and slide shows without a player."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tacit.base.files import write_whole
from tacit.errors import RunError
from tacit.lab.exhibit import Animated
from tacit.lab.record import ANIMATION
from tacit.report.style import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from tacit.lab.runner import Sheet

FRAME, HOLD = 80, 2500  # milliseconds; the last frame stays to be looked at
EXACT, SPREAD = 64, 128  # colours
ALIKE = 5  # levels of 255


def save_animation(folder: Path, sheet: Sheet) -> bytes | None:
    """Draw the exhibit's frames into animation.gif; returns its bytes, None where nothing moves.

    The same data give the same file.
    """
    code = sheet.order.exhibit.load()
    if not isinstance(code, Animated):
        return None
    with house_style():
        frames = list(drawn(code.animate(sheet.data, sheet.order.config)))
    if not frames:
        raise RunError(f"exhibit {sheet.order.exhibit.id} is broken: its animation has no frames")
    first, *others = in_one_palette(frames)
    # no dithering and one palette: what does not move is not stored again
    write_whole(
        folder / ANIMATION,
        lambda stream: first.save(
            stream,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=[FRAME] * len(others) + [HOLD],
            loop=0,
        ),
    )
    return (folder / ANIMATION).read_bytes()


def drawn(figures: Iterable[Figure]) -> Iterator[Image]:
    """The pixels of each figure; of a figure seen before, only artists marked as animated are drawn anew."""
    import numpy as np
    from matplotlib.artist import Artist
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    known: Figure | None = None
    for figure in figures:
        if figure is not known:
            canvas: Any = FigureCanvasAgg(figure)
            moving = sorted(figure.findobj(Artist.get_animated), key=Artist.get_zorder)
            if moving:
                canvas.draw()  # all but what moves
                still = canvas.copy_from_bbox(figure.bbox)
                known = figure
        if moving:
            canvas.restore_region(still)
            for artist in moving:
                figure.draw_artist(artist)
        else:
            canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def in_one_palette(frames: list[Image]) -> list[Image]:
    """The frames in the same few colours, chosen on the first, the middle and the last.

    Grounds and lines keep their own: the most frequent colours are taken as they are, others are spread.
    """
    from PIL import Image

    width, height = frames[0].size
    sample = Image.new("RGB", (width, 3 * height))
    for place, index in enumerate((0, len(frames) // 2, -1)):
        sample.paste(frames[index], (0, place * height))
    counted = cast("list[tuple[int, tuple[int, ...]]]", sample.getcolors(3 * width * height))
    exact = [colour for _, colour in sorted(counted, reverse=True)[:EXACT]]
    spread = sample.quantize(SPREAD, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    flat = spread.getpalette() or []
    palette = Image.new("P", (1, 1))
    chosen: list[tuple[int, ...]] = []
    for colour in (*exact, *zip(flat[::3], flat[1::3], flat[2::3], strict=True)):
        # of colours that look the same the first, most frequent one: white must not become nearly white
        if all(
            max(abs(a - b) for a, b in zip(colour, other, strict=True)) > ALIKE for other in chosen
        ):
            chosen.append(colour)
    palette.putpalette([part for colour in chosen for part in colour])
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
