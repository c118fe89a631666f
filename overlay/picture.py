"""A picture that a command writes: one pair of axes in a file. Needs matplotlib."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bitloom.golden.atomic import write_bytes
from bitloom.golden.distribution import pip_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_MATPLOTLIB = f"--plot needs matplotlib: {pip_install('explore')}"
NAMELESS = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
"""By ending: what matplotlib would write of its version and of the time, so that the same picture is the same bytes."""
ENDINGS = tuple(NAMELESS)


def check_plot(path: Path) -> None:
    """Check beforehand that `picture` can write that file.

    Raises
    ------
    ValueError
        If the file's name has another ending than ENDINGS.
    ImportError
        If matplotlib is missing.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"--plot: file name must end with {' or '.join(ENDINGS)}, got {path}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(NO_MATPLOTLIB) from None


@contextmanager
def picture(path: Path, size: tuple[float, float]) -> "Iterator[Axes]":
    """Axes to draw on; the file is written at the end, as PNG or SVG by its ending, without a display.

    The same drawing is the same bytes: a file has neither a date nor a random name.

    Parameters
    ----------
    path
        The file; its folder is made if it isn't there.
    size
        Width and height in inches.

    Raises
    ------
    ValueError, ImportError
        As `check_plot`.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    yield figure.add_subplot()
    written = io.BytesIO()
    with rc_context({"svg.hashsalt": "bitloom"}):  # else names in an SVG are drawn at random
        figure.savefig(written, format=path.suffix[1:], metadata=NAMELESS[path.suffix])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, written.getvalue())
