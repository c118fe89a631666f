"""Words of a frame: which image bit each bit of NPU 0's first map carries, and the binariser's thresholds."""

from dataclasses import dataclass, field

import numpy as np

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program_checks import ONE, ZERO

from . import integer_rows as integer
from .layout import Ints, Layout, chunks, plane_layout, plane_words, shared_words
from .lowered_layers import IntegerLayer
from .lowering import Lowered


@dataclass(frozen=True, eq=False)
class FrameWords:
    """The map that comes from the host.

    Attributes
    ----------
    layout
        (words of a tuple, kfp): lanes of its tuples, or UNUSED.
    codes
        (words of a tuple,): code of each word's kernel rows.
    words
        (frame words, word bits): image bit that each bit carries, or ZERO, ONE.
    limits
        (words of a tuple, kfp): thresholds of the binariser; no rows where there is none.
    """

    layout: Layout
    codes: Ints
    words: Layout
    limits: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))


def frame_words(lowered: Lowered, folding: Npu, order: Ints) -> FrameWords:
    """Words of a frame.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    folding
        Of the NPU that frames enter.
    order
        (tuples,): positions of the input map in the order in which they are sent.

    Returns
    -------
    FrameWords
        Layout, codes, words and thresholds.
    """
    if isinstance(lowered.layers[0], IntegerLayer):
        layout = chunks(np.arange(lowered.source.channels), folding.kfp)
        words = integer.input_words(lowered.source, layout, order, folding.feature_bits)
        return FrameWords(layout, np.zeros(len(layout), np.int64), words)
    layout, codes = _input_layout(lowered, folding)
    words = _input_words(lowered, layout, order)
    if not folding.binariser_bits:
        return FrameWords(layout, codes, words)
    return FrameWords(layout, codes, *_binarise(lowered, layout, words, order, folding.binariser_bits))


def _binarise(lowered: Lowered, layout: Layout, words: Layout, order: Ints, bits: int) -> tuple[Layout, Ints]:
    """(input words of features of ``bits`` bits, rows of thresholds, one a word of a tuple).

    An input that is binary already has features 0 and 1 and thresholds 1. Unused lanes stay 0.
    """
    if lowered.binariser is None:
        wide = np.full((*words.shape, bits), ZERO, np.int64)
        wide[..., 0] = words
        return wide.reshape(len(words), -1), np.ones(layout.shape, np.int64)
    limits = np.append(lowered.binariser, 1 << (bits - 1))[layout]  # UNUSED picks the one that is never reached
    return integer.input_words(lowered.source, layout, order, bits), limits


def _input_layout(lowered: Lowered, npu: Npu) -> tuple[Layout, Ints]:
    """Layout of the first map's tuples, and the code of each word."""
    channels, planes = lowered.layers[0].weight.shape[2:]
    shared = npu.lanes_per_weight
    if lowered.input_bits and shared > 1:
        return plane_words(channels, planes - 1, npu.kfp, shared, npu.lane_step)
    if lowered.input_bits:
        return plane_layout(channels, planes - 1, npu.kfp, npu.planes)
    if shared == lowered.source.encoding.bits:
        layout = shared_words(np.arange(channels).reshape(-1, shared), npu.kfp, npu.lane_step)
    else:
        layout = chunks(np.arange(channels), npu.kfp)
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
    plane, channel = np.array(stored), np.arange(source.channels)[:, None]
    of_lane = np.where(plane >= 0, channel * bits + plane, plane).ravel()
    lanes = np.append(of_lane, ZERO)[layout]  # UNUSED picks the appended one
    at = order[:, None, None] * (source.channels * bits)
    return np.where(lanes >= 0, at + lanes, lanes).reshape(-1, layout.shape[1])
