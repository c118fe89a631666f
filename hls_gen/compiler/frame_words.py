"""Words of a frame: which image bit each bit of NPU 0's first map carries, and the binariser's thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.golden.layer import Map
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import ONE, ZERO

from .layout import Layout, chunks, lane_bits, plane_layout, plane_words, shared_words, side_by_side
from .lowering import Lowered


@dataclass(frozen=True, eq=False)
class FrameWords:
    """The map that comes from the host."""

    layout: Layout
    """(words of a tuple, kfp): lanes of its tuples, or UNUSED."""
    codes: Ints
    """(words of a tuple,): code of each word's kernel rows."""
    words: Layout
    """(frame words, word bits): image bit that each bit carries, or ZERO, ONE."""
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
        What the window former makes of the frame, where it joins the taps of the first layer.

    Returns
    -------
    FrameWords
        Layout, codes, words and thresholds.
    """
    layout, codes = input_layout(lowered, folding, formed)
    if formed is not None:
        return FrameWords(layout, codes, _packed(lowered, folding, formed))
    order = np.concatenate(orders)
    if not lowered.layers[0].binary:
        return FrameWords(layout, codes, integer_words(lowered.source, layout, order, folding.array.feature_bits))
    words = _input_words(lowered, layout, order)
    if not folding.ports.binariser:
        return FrameWords(layout, codes, words)
    return FrameWords(layout, codes, *_binarise(lowered, layout, words, order, folding.value("binariser_bits")))


def _packed(lowered: Lowered, npu: Npu, formed: FormedWindows) -> Layout:
    """(frame words, word bits): positions of the map, row after row, side by side in words for the window former."""
    rows = formed.map_rows()[:, None]  # (rows of positions, 1, rows of the map in each)
    columns = np.arange(formed.sent[1])[:, None]
    order = np.where((rows >= 0) & (rows < formed.height), rows * formed.width + columns, UNUSED).ravel()
    channels = np.arange(formed.channels)[None]
    together = formed.word_positions
    if lowered.source.encoding.kind == "bipolar":
        values = _input_words(lowered, channels, order)
    else:
        values = integer_words(lowered.source, channels, order, npu.former_lane_bits)
    values = np.where(order[:, None] == UNUSED, ZERO, values).reshape(-1, formed.together * values.shape[1])
    count, bits = values.shape
    whole = np.full((formed.frame_words * together, bits), ZERO, np.int64)
    whole[:count] = values
    words = np.full((formed.frame_words, npu.array.word_bits), ZERO, np.int64)
    words[:, : together * bits] = whole.reshape(len(words), -1)
    return words


def _binarise(lowered: Lowered, layout: Layout, words: Layout, order: Ints, bits: int) -> tuple[Layout, Ints]:
    """(input words of features of ``bits`` bits, rows of thresholds, one a word of a tuple).

    An input that is binary already has features 0 and 1 and thresholds 1. Unused lanes stay 0.
    """
    if lowered.binariser is None:
        wide = np.full((*words.shape, bits), ZERO, np.int64)
        wide[..., 0] = words
        return wide.reshape(len(words), -1), np.ones(layout.shape, np.int64)
    limits = np.append(lowered.binariser, 1 << (bits - 1))[layout]  # UNUSED picks the one that is never reached
    return integer_words(lowered.source, layout, order, bits), limits


def input_layout(lowered: Lowered, npu: Npu, formed: FormedWindows | None = None) -> tuple[Layout, Ints]:
    """Layout of the tuples that the first layer reads, and the code of each word; parameters as of `frame_words`."""
    if not lowered.layers[0].binary:
        layout = chunks(np.arange(lowered.source.channels), npu.array.kfp) if formed is None else formed.layout()
        return layout, np.zeros(len(layout), np.int64)
    channels, planes = lowered.layers[0].weight.shape[2:]
    if formed is not None:
        layout = formed.layout()
        if lowered.input_bits:
            return side_by_side(layout, planes - 1, npu.array.kfp), np.ones(len(layout), np.int64)
        return layout, np.zeros(len(layout), np.int64)
    shared = npu.array.lanes_per_weight
    if lowered.input_bits and shared > 1:
        return plane_words(channels, planes - 1, npu.array.kfp, shared, npu.array.lane_step)
    if lowered.input_bits:
        return plane_layout(channels, planes - 1, npu.array.kfp, npu.array.planes)
    if shared == lowered.source.encoding.bits:
        layout = shared_words(np.arange(channels).reshape(-1, shared), npu.array.kfp, npu.array.lane_step)
    else:
        layout = chunks(np.arange(channels), npu.array.kfp)
    return layout, np.zeros(len(layout), np.int64)


def _input_words(lowered: Lowered, layout: Layout, order: Ints) -> Layout:
    """(tuples * words, kfp): number of the image bit in each lane, or ZERO, ONE.

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
    at = order[:, None, None] * (source.channels * bits)
    return np.where(lanes >= 0, at + lanes, lanes).reshape(-1, layout.shape[1])


def integer_words(source: Map, layout: Layout, order: Ints, feature_bits: int) -> Layout:
    """Find where the bits of a frame's words come from.

    Parameters
    ----------
    source
        The input map.
    layout
        (words, lanes) layout of a tuple.
    order
        (tuples,) row-major position of each tuple that is sent.
    feature_bits
        Bits of a lane. Above the stored bits of a signed number its sign is repeated; above an unsigned one's come
        zeros.

    Returns
    -------
    ndarray
        (tuples * words, word bits): number of the image bit in each place, or ZERO.
    """
    stored = source.encoding.bits
    above = ZERO if source.encoding.kind == "unsigned" else stored - 1
    bit = np.array([b if b < stored else above for b in range(feature_bits)])
    channel = np.arange(source.channels)[:, None]
    of_bit = np.where(bit >= 0, channel * stored + bit, ZERO).ravel()
    lanes = np.append(of_bit, ZERO)[lane_bits(layout, feature_bits)]
    at = order[:, None, None] * (source.channels * stored)
    return np.where(lanes >= 0, at + lanes, lanes).reshape(-1, layout.shape[1] * feature_bits)
