"""Words of a frame: where the image's values lie in NPU 0's first map, and the binariser's thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.golden.layer import Map
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.frame_layout import ONE, ZERO, FrameLayout
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu

from .layout import WordLayout, lanes_in_words, plane_layout, plane_words, planes_side_by_side, shared_words
from .lowering import Lowered


@dataclass(frozen=True, eq=False)
class FrameWords:
    """The map that comes from the host."""

    layout: WordLayout
    """(words of a tuple, kfp): lanes of its tuples, or UNUSED."""
    codes: Ints
    """(words of a tuple,): code of the kernel rows that each word meets (`layout.plane_layout`)."""
    frame_layout: FrameLayout
    """Where the image's values lie in the words that are sent."""
    limits: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """(words of a tuple, kfp): thresholds of the binariser; no rows where there is none."""


def frame_words(
    lowered: Lowered, folding: Npu, orders: Sequence[Ints], formed: FormedWindows | None = None
) -> FrameWords:
    """Words of a frame.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    folding
        Of the NPU that frames enter.
    orders
        (tuples,): positions of the input map in the order in which they are sent, for each layer that reads it; of no
        meaning for a former.
    formed
        Windows that the window former makes of the frame, where the former joins the taps of the first layer.

    Returns
    -------
    FrameWords
        Layout, codes, frame and thresholds.
    """
    layout, codes = input_layout(lowered, folding, formed)
    if formed is not None:
        return FrameWords(layout, codes, _packed(lowered, folding, formed))
    positions = np.concatenate(orders).astype(np.int32)[:, None]
    if not lowered.layers[0].binary:
        return FrameWords(layout, codes, integer_frame(lowered.source, layout, positions, folding.array.feature_bits))
    frame = _binary_frame(lowered, layout, positions)
    if not folding.ports.binariser:
        return FrameWords(layout, codes, frame)
    return FrameWords(layout, codes, *_binarise(lowered, layout, frame, folding.value("binariser_bits")))


def _packed(lowered: Lowered, npu: Npu, formed: FormedWindows) -> FrameLayout:
    """Positions of the map, row after row, side by side in words for the window former."""
    rows = formed.map_rows()[:, None]  # (rows of positions, 1, rows of the map in each)
    columns = np.arange(formed.sent[1])[:, None]
    order = np.where((rows >= 0) & (rows < formed.height), rows * formed.width + columns, UNUSED).ravel()
    together = formed.together * formed.word_positions
    positions = np.full((formed.frame_words, together), UNUSED, np.int32)
    positions.flat[: len(order)] = order
    stored = lowered.source.encoding.bits
    of_bits = lowered.source.encoding.kind == "bipolar"
    step = 1 if of_bits else stored
    return FrameLayout(
        channels=lowered.source.channels,
        positions=positions,
        lanes=np.arange(0, together * lowered.source.channels * stored, step, np.int32)[None],
        lane_bits=1 if of_bits else npu.former_lane_bits,
        word_bits=npu.array.word_bits,
    )


def _binarise(lowered: Lowered, layout: WordLayout, frame: FrameLayout, bits: int) -> tuple[FrameLayout, Ints]:
    """(frame of features of ``bits`` bits, rows of thresholds, one a word of a tuple).

    An input that is binary already has features 0 and 1 and thresholds 1. Unused lanes stay 0.
    """
    if lowered.binariser is None:
        wide = np.full((*frame.lanes.shape, bits), ZERO, np.int32)
        wide[..., 0] = frame.lanes
        lanes = wide.reshape(len(wide), -1)
        return replace(frame, lanes=lanes, word_bits=lanes.shape[1]), np.ones(layout.shape, np.int64)
    limits = np.append(lowered.binariser, 1 << (bits - 1))[layout]  # UNUSED picks the one that is never reached
    return integer_frame(lowered.source, layout, frame.positions, bits), limits


def input_layout(lowered: Lowered, npu: Npu, formed: FormedWindows | None = None) -> tuple[WordLayout, Ints]:
    """Layout of the tuples that the first layer reads, and the code of each word; parameters as of `frame_words`."""
    if not lowered.layers[0].binary:
        lanes = np.arange(lowered.source.channels)
        layout = lanes_in_words(lanes, npu.array.kfp) if formed is None else formed.layout()
        return layout, np.zeros(len(layout), np.int64)
    channels, planes = lowered.layers[0].weight.shape[2:]
    if formed is not None:
        layout = formed.layout()
        if lowered.input_bits:
            return planes_side_by_side(layout, planes - 1, npu.array.kfp), np.ones(len(layout), np.int64)
        return layout, np.zeros(len(layout), np.int64)
    shared = npu.array.lanes_per_weight
    if lowered.input_bits and shared > 1:
        return plane_words(channels, planes - 1, npu.array.kfp, shared, npu.array.lane_step)
    if lowered.input_bits:
        return plane_layout(channels, planes - 1, npu.array.kfp, npu.array.planes)
    if shared == lowered.source.encoding.bits:
        layout = shared_words(np.arange(channels).reshape(-1, shared), npu.array.kfp, npu.array.lane_step)
    else:
        layout = lanes_in_words(np.arange(channels), npu.array.kfp)
    return layout, np.zeros(len(layout), np.int64)


def _binary_frame(lowered: Lowered, layout: WordLayout, positions: Array) -> FrameLayout:
    """The frame whose lanes are bits of the image.

    A plane above the stored bits repeats the sign bit, or is 0 where there is none.
    """
    source = lowered.source
    bits = source.encoding.bits
    stored = list(range(bits))  # bit of the value in each plane
    if lowered.input_bits:
        above = ZERO if source.encoding.kind == "unsigned" else bits - 1
        stored += [above] * (lowered.input_bits - bits) + [ONE]
    plane = np.array(stored)
    channel = np.arange(source.channels)[:, None]
    of_lane = np.where(plane >= 0, channel * bits + plane, plane).ravel()
    lanes = np.append(of_lane, ZERO)[layout]  # UNUSED picks the appended one
    return FrameLayout(
        channels=source.channels,
        positions=positions,
        lanes=lanes.astype(np.int32),
        lane_bits=1,
        word_bits=layout.shape[1],
    )


def integer_frame(source: Map, layout: WordLayout, positions: Array, feature_bits: int) -> FrameLayout:
    """The frame whose lanes are values of the image.

    Parameters
    ----------
    source
        The input map.
    layout
        (words, lanes) layout of a tuple.
    positions
        (tuples, 1) int32: row-major position of each tuple that is sent.
    feature_bits
        Bits of a lane.
    """
    lanes = np.where(layout == UNUSED, ZERO, layout * source.encoding.bits)
    word_bits = layout.shape[1] * feature_bits
    return FrameLayout(
        channels=source.channels,
        positions=positions,
        lanes=lanes.astype(np.int32),
        lane_bits=feature_bits,
        word_bits=word_bits,
    )
