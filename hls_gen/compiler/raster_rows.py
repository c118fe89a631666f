"""Fields by which an NPU with ``raster`` counts through a layer's taps (hls_gen/rtl/sequencer/raster.py; spec B7)."""

from .schedule import Raster

AXIS = ("kernel_minus_1", "stride", "lead", "fresh", "room", "step", "cross")
COMMON = ("by_counters", "x_room_end", *(f"{axis}_{what}" for axis in "xy" for what in AXIS), "line_words", "gap_words")
KERNEL = ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")
MODULAR = ("x_step", "x_cross", "y_step", "y_cross", "line_words", *KERNEL)
"""Fields that are added to addresses, and count modulo 2^width."""


def no_counters(kernel: bool) -> dict[str, int]:
    """Fields of a layer that has tables, or needs none.

    Parameters
    ----------
    kernel
        Whether they are those of the convolution's sequencer; else of the pool's.

    Returns
    -------
    dict
        Name of a field -> 0.
    """
    return dict.fromkeys((*COMMON, *(KERNEL if kernel else ())), 0)


def counter_fields(raster: Raster, words: int, tap_rows: int) -> dict[str, int]:
    """Fields of a layer by counters.

    Parameters
    ----------
    raster
        What the counters run by, in tuples.
    words
        Words of a tuple.
    tap_rows
        Kernel rows of a tap; 0 in a pool.

    Returns
    -------
    dict
        Name of a field -> its value.
    """
    line = raster.x.size * words
    out = {"by_counters": 1, "x_room_end": raster.x.room_end, "line_words": line, "gap_words": raster.gap * words}
    for name, axis, unit in (("x", raster.x, words), ("y", raster.y, line)):
        values = (axis.kernel - 1, axis.step, axis.lead, axis.fresh, axis.room, axis.step * unit, axis.cross * unit)
        out |= {f"{name}_{what}": value for what, value in zip(AXIS, values)}
    if tap_rows:
        line_rows = raster.x.kernel * tap_rows
        out |= {"x_lead_rows": raster.x.lead * tap_rows, "x_stride_rows": raster.x.step * tap_rows}
        out |= {"y_lead_rows": raster.y.lead * line_rows, "y_stride_rows": raster.y.step * line_rows}
        out["line_rows"] = line_rows
    return out
