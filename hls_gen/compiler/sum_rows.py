"""Rows of a lowered layer up to its sums: of the array's sequencer, and of the kernel memory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.npu import Npu

from . import integer_rows as integer
from .layout import UNUSED, Ints, Layout
from .lowered_layers import LoweredLayer, Xnor
from .map_way import MapWay
from .npu_plan import NpuPlan
from .schedule import StageTables
from .tables import rows
from .tuple_parts import TuplePart, tuple_part


@dataclass(frozen=True, eq=False)
class MapWords:
    """A map on its way to the NPU that reads it.

    Attributes
    ----------
    layout
        (words of a tuple, lanes of a word): lanes of its tuples, or UNUSED.
    codes
        (words of a tuple,): code of each word's kernel rows; 0 but for an integer input.
    inlet
        The inlet by which it comes, or "skip" for the skip store.
    parts
        Of two maps that are read side by side: words of a tuple from the inlet, and then from the skip store; None for
        one map.
    """

    layout: Layout
    codes: Ints
    inlet: str
    parts: tuple[int, int] | None = None


def words_read(p: LoweredLayer, maps: Mapping[str, MapWords], ways: Mapping[str, MapWay]) -> MapWords:
    """The words that a lowered layer reads.

    Parameters
    ----------
    p
        The lowered layer.
    maps
        Words of each map that is made before, by the name of the lowered layer that makes it.
    ways
        The way of each of these maps but the input.

    Returns
    -------
    MapWords
        Of two maps that it reads side by side those of the map store come first.
    """
    first = maps[p.reads]
    skipped = p.reads in ways and ways[p.reads].skip_reader == p.name
    if p.joins is None:
        return replace(first, inlet="skip") if skipped else first
    second, lanes = maps[p.joins], int(first.layout.max()) + 1
    second = replace(second, layout=np.where(second.layout == UNUSED, UNUSED, second.layout + lanes))
    if skipped:
        first, second = second, first
    layout, codes = (np.concatenate([getattr(one, what) for one in (first, second)]) for what in ("layout", "codes"))
    return MapWords(layout, codes, first.inlet, (len(first.layout), len(second.layout)))


def append_sums(made: NpuPlan, p: LoweredLayer, tables: StageTables, read: MapWords, inner: int) -> int:
    """Append the rows of a lowered layer up to its sums.

    Parameters
    ----------
    made
        The plan of the NPU that computes the lowered layer.
    p
        The lowered layer.
    tables
        The schedule of its convolution.
    read
        The map that it reads.
    inner
        Kernel groups that use a word in turn (hls_gen/compiler/dataflow.py).

    Returns
    -------
    int
        Its beats.
    """
    folding, layout = made.folding, read.layout
    groups, places, words = -(-p.out_channels // folding.kgp), p.weight.shape[1], len(layout)
    outer = groups // inner
    part, left_out = _part(made, p, layout, inner)
    made.conv.append(tables, words, visits=p.visits, reread=outer > 1, inner=inner, part=part.words)
    _append_ways(made, read)
    made.conv.layers[-1] |= {
        "kernel_base": rows(made.kernels),
        "group_rows": places * part.words if outer > 1 else 0,
        "groups_minus_1": outer - 1,
    }
    if folding.tuple_parts:
        made.conv.layers[-1] |= part.fields
    if folding.accumulators > 1:
        made.conv.layers[-1] |= {"inner_groups_minus_1": inner - 1, "tap_rows_minus_1": part.words * inner - 1}
    arithmetic = p.arithmetic
    if isinstance(arithmetic, Xnor):
        offset = arithmetic.tap_offset - (left_out if arithmetic.double else left_out // 2)
        made.conv.layers[-1] |= {"tap_offset": offset, **({"twice": p.visits - 1} if made.conv.raster else {})}
        kernels = _kernels(p, p.weight, layout, folding)
    else:
        kernels = integer.kernels(p, layout, folding.kgp, folding.weight_bits)
    order = np.arange(groups * places * words)
    if part.words < words:
        order = order[part.rows(groups, places, words)]
    if inner > 1:  # from (group, place, word) to (place, word, group)
        order = order.reshape(groups, -1).T.ravel()
    made.kernels.append(kernels[order])
    if isinstance(arithmetic, Xnor) and folding.kernel_binariser:
        made.magnitudes.append(_kernels(p, arithmetic.magnitudes, layout, folding)[order])
    made.codes.append(np.tile(read.codes, groups * places)[order])
    made.words.append(layout)
    accumulate = arithmetic.accumulate if isinstance(arithmetic, Xnor) else "popcount"
    made.any_match.append(accumulate == "or")
    made.by_words.append(accumulate == "or_words")
    taps = int((p.window.positions(p.height, p.width) >= 0).sum(axis=1).max())
    made.window_lanes = max(made.window_lanes, taps * p.visits * part.words * folding.kfp)
    return len(tables.index) * p.visits * part.words * groups


def _part(made: NpuPlan, p: LoweredLayer, layout: Layout, inner: int) -> tuple[TuplePart, int]:
    """The words of each tuple that kernel groups read, and lanes with a channel that they leave out (tuple_parts.py);
    all words where a word is for several groups, or the NPU knows no parts. Notes whether a part would do."""
    whole = TuplePart(len(layout)), 0
    found = tuple_part(p.arithmetic.weighted, layout, made.folding.kgp) if inner == 1 else whole
    made.gains_by_parts |= found[0].words < len(layout)
    return found if made.folding.tuple_parts else whole


def _append_ways(made: NpuPlan, read: MapWords) -> None:
    """Append where the words of a layer come from to its row of memory ``inputs``."""
    if len(made.folding.sources) > 1:
        made.conv.inputs[-1]["source"] = made.folding.sources.index(read.inlet)
    if made.folding.joined_words:
        first, second = read.parts or (1, 1)
        made.conv.inputs[-1] |= {"joins": int(read.parts is not None), "first_words_minus_1": first - 1,
                                 "second_words_minus_1": second - 1}  # fmt: skip


def check_accumulation(p: LoweredLayer, npu: Npu, layout: Layout) -> None:
    """Check that an NPU can accumulate as a lowered layer does.

    Parameters
    ----------
    p
        The lowered layer.
    npu
        The NPU.
    layout
        (words of a tuple, lanes of a word): channels of the map that it reads, or UNUSED.

    Raises
    ------
    ValueError
        It can't.
    """
    layer = p.arithmetic.accumulate if isinstance(p.arithmetic, Xnor) else "popcount"
    if isinstance(p.arithmetic, Xnor) and layer == "or_words":
        _check_words(p.name, p.arithmetic, npu, layout)
        return
    if npu.accumulate not in (layer, "both"):
        raise ValueError(
            f"{p.name}: accumulate {layer} needs an NPU that accumulates {layer} or both, got {npu.accumulate}"
        )


def _check_words(name: str, of: Xnor, npu: Npu, layout: Layout) -> None:
    """ValueError unless the channels of each word of a layer, and no others, lie in ``word_lanes`` lanes of the NPU."""
    if not npu.word_lanes:
        raise ValueError(f"{name}: accumulate or_words needs an NPU with word_lanes, got {npu.word_lanes}")
    if npu.word_lanes < of.word_channels:
        raise ValueError(
            f"{name}: accumulate or_words with words of {of.word_channels} channels needs an NPU with word_lanes >= "
            f"{of.word_channels}, since a PE takes the OR of a word in one beat, got word_lanes = {npu.word_lanes} and "
            f"kfp = {npu.kfp}"
        )
    groups = layout.reshape(-1, npu.word_lanes)  # a row for each OR of the PE in a beat
    words = np.where(groups == UNUSED, UNUSED, groups // of.word_channels)
    count = -(-of.weight.shape[2] // of.word_channels)
    places = [set(np.nonzero((words == word).any(axis=1))[0].tolist()) for word in range(count)]
    if max(map(len, places)) > 1 or len(set().union(*places)) < count:
        raise ValueError(
            f"{name}: each word of {of.word_channels} channels must fill a group of word_lanes = {npu.word_lanes} "
            f"lanes alone, got {words.tolist()} as the words of the groups' lanes"
        )


def _kernels(p: LoweredLayer, weight: Array, layout: Layout, npu: Npu) -> Array:
    """(groups * taps * visits * words, kgp * row_weights) weight bits, or magnitudes, of the layer's ``weight``; unused
    lanes 1, unused kernels as kernel 0."""
    kgp, groups = npu.kgp, -(-p.out_channels // npu.kgp)
    places = p.weight.shape[1]
    lanes = weight.reshape(p.out_channels, places, -1)
    padded = np.concatenate([lanes, np.ones((*lanes.shape[:2], 1), lanes.dtype)], axis=2)
    kernel = np.zeros(groups * kgp, np.int64)
    kernel[: p.out_channels] = np.arange(p.out_channels)
    bits = _stored(p, padded[kernel][:, :, layout], layout, npu)  # (kernels, places, words, row_weights)
    bits = bits.reshape(groups, kgp, places, len(layout), -1).transpose(0, 2, 3, 1, 4)
    return bits.reshape(groups * places * len(layout), -1)


def _stored(p: LoweredLayer, bits: Array, layout: Layout, npu: Npu) -> Array:
    """The weights of (kernels, places, words, kfp) lanes that are stored: one of each set of lanes that share it.

    ValueError where the lanes of a set have different weights. Unused lanes of bit planes may: what they add in one
    plane, others take away (`layout.plane_words`).
    """
    if npu.lanes_per_weight == 1:
        return bits
    of_lanes = np.array(npu.weight_of_lanes)
    stored: Array = bits[..., np.unique(of_lanes, return_index=True)[1]]
    unused = (layout == UNUSED) & (p.weight.shape[3] > 1)
    if not ((stored[..., of_lanes] == bits) | unused).all():
        raise ValueError(
            f"{p.name}: the lanes that share a weight must be the bits of one value, lanes_per_weight = "
            f"{npu.lanes_per_weight} of them, {npu.lane_step} apart, got other ones"
        )
    return stored
