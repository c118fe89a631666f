"""Window former: the windows of a map as an NPU's former makes them, in the best of several ways.

A position may have several rows of the map side by side, and words of a window may leave while positions for the next
one come (hls_gen/design/formed_windows.py).
"""

from dataclasses import replace

from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.npu import Npu

from .input_maps import is_input
from .workloads import Workload


def former_windows(workload: Workload, npu: Npu, rows: int, columns: int) -> FormedWindows | None:
    """The windows that an NPU's window former makes of the map that a workload reads, in the way in which former and
    array together take the fewest cycles.

    Parameters
    ----------
    workload
        The workload, with its taps formed in ``with_former``.
    npu
        The NPU. The sizes of its former count where the former has them; else a former of its own makes these windows.
    rows, columns
        Windows that are wanted: the first ones of each axis.

    Returns
    -------
    FormedWindows or None
        None where the former can't make them, or a tap beside the map would be a bit: no bit adds nothing.
    """
    assert workload.with_former is not None
    formed = FormedWindows(
        height=workload.height,
        width=workload.width,
        channels=workload.channels,
        window=workload.with_former.split.window,
        rows=rows,
        columns=columns,
        column_lanes=npu.former_sizes.column if npu.former_sizes else 0,
        word_lanes=npu.array.plane_lanes,
        packed=is_input(workload.reads),
    )
    if formed.pads and workload.binary and not workload.planes:
        return None
    groups = npu.array.groups(workload.out_channels)
    ways = (_fitted(windows, npu) for windows in _together(formed.upright, binary=workload.binary))
    return min(
        (windows for windows in ways if windows is not None),
        key=lambda windows: max(windows.cycles, windows.rows * windows.columns * windows.words * groups),
        default=None,
    )


def _together(formed: FormedWindows, *, binary: bool) -> list[FormedWindows]:
    """The windows with each number of rows of the map that a position may have side by side, the fewest first.

    The host packs the words of such positions. With the binary engine a position has one row: a lane without a tap
    would count as a bit, where an integer of 0 adds nothing.
    """
    (kh, _), (sy, _) = formed.window.kernel, formed.window.stride
    most = sy if formed.packed and not binary else 1
    return [replace(formed, together=rows) for rows in range(1, min(most, kh) + 1) if sy % rows == 0]


def _fitted(formed: FormedWindows, npu: Npu) -> FormedWindows | None:
    """The windows as the NPU's former makes them; where the former has no sizes yet, as a former made for these windows
    would. None where it can't make them."""
    sizes = npu.former_sizes
    if sizes is None:
        formed = replace(formed, column_lanes=formed.tap_lanes)
    ahead = bool(sizes.ahead) if sizes else formed.words > 1 and formed.stride[1] > 1
    formed = replace(formed, ahead=ahead)
    channels = formed.position_channels
    if not formed.countable or channels > npu.array.plane_lanes or formed.tap_lanes > formed.column_lanes:
        return None
    if sizes and (channels % sizes.granule or any(need > npu.value(key) for key, need in formed.needs().items())):
        return None
    return formed
