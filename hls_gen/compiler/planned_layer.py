"""A layer on its NPU: whose words it reads and makes, in how many kernel groups and parts of tuples, by which schedule.
What it needs of the NPU (needs.py), its rows (rows/) and its flow (flow/of_plan.py) follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.gearbox import regroup
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present

from .layout import WordLayout, result_layout, taps_side_by_side, words_side_by_side
from .lowered_layers import LoweredLayer
from .schedule import StageTables
from .sequencer_taps import OnSequencer, SequencerTaps
from .tuple_parts import TuplePart, tuple_part
from .ways import MapWay


@dataclass(frozen=True, eq=False)
class MapWords:
    """A map on its way to the NPU that reads it."""

    layout: WordLayout
    """(words of a tuple, lanes of a word): lanes of its tuples, or UNUSED."""
    codes: Ints
    """(words of a tuple,): code of the kernel rows that each word meets, which says by which bit plane of an integer
    input its sums count (`layout.plane_layout`); 0 of other maps."""
    inlet: str
    """The inlet by which it comes, or "skip" for the skip store."""
    joined_words: tuple[int, int] | None = None
    """Of two maps that are read side by side: words of a tuple from the inlet, and then from the skip store; None for
    one map."""

    @classmethod
    def of(cls, layout: WordLayout, inlet: str) -> "MapWords":
        """A map of bits or of integers in these words."""
        return cls(layout, np.zeros(len(layout), np.int64), inlet)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedLayer:
    """A layer on its NPU."""

    layer: LoweredLayer
    """The lowered layer."""
    number: int
    """Of the NPU."""
    npu: Npu
    """That NPU."""
    way: MapWay
    """The way of the layer's map."""
    read: MapWords
    """The words that it reads, as the array takes them: those that a former makes, if one stands in front."""
    formed: FormedWindows | None = None
    """Windows that this former makes; None where there is none, or words pass it."""
    input_tables: StageTables
    """The schedule by which its map is read: the former's, or that of the convolution."""
    inner: int
    """Kernel groups that use a word in turn (hls_gen/compiler/choices.py)."""
    tuple_part: TuplePart
    """The words of each tuple that kernel groups read: all where the NPU knows no parts."""
    left_out: int
    """How many of a tuple's lanes that have a channel lie in words that a kernel group does not read: on the binary
    engine, whose offset counts them, as many for each group."""
    gains_by_tuple_parts: bool
    """Whether kernel groups need a part of each tuple only, whether or not the NPU can read one."""
    on_array: OnSequencer
    """The map that it reads, on the array's sequencer."""
    on_pool_unit: OnSequencer | None
    """Its results on the pool unit's sequencer, which hands tuples on where there is no pool; None where they don't
    pass a pool unit."""
    steps: WordLayout
    """(steps, ol): in which its results leave the results unit."""
    pooled: WordLayout
    """(words, pfp): words of a tuple that the pool unit takes; none where results don't pass one."""
    output: WordLayout
    """(words, lanes): what leaves for a window, in words of its reader."""
    chunk_words: int | None = None
    """Words of a chunk of the map that it reads, where that comes from the NPU before; else None."""
    sizes_buffers: bool = False
    """Whether buffers between NPUs are as large as the chunk."""

    @property
    def words(self) -> int:
        """Words of a tuple that it reads."""
        return self.on_array.words

    @property
    def coming_tuple_words(self) -> int:
        """Words of a position of the map as they come to the NPU, in front of a former where there is one."""
        return 1 if self.formed else self.on_array.coming_words // len(self.input_tables.input_order)

    @property
    def coming_words(self) -> int:
        """Words of the map as they come to the NPU, in front of a former where there is one."""
        return self.formed.frame_words if self.formed else self.on_array.coming_words

    @property
    def sequencers(self) -> tuple[OnSequencer, ...]:
        """The maps on its NPU's sequencers."""
        return (self.on_array, self.on_pool_unit) if self.on_pool_unit else (self.on_array,)

    @property
    def is_formed(self) -> bool:
        """Whether a former puts taps side by side that it reads, or that its pool reads."""
        return self.layer.former_taps is not None or self.layer.split_pool is not None

    @property
    def groups(self) -> int:
        """Kernel groups."""
        return self.npu.array.groups(self.layer.out_channels)

    @property
    def passes(self) -> int:
        """Kernel groups for each of which a window is passed anew."""
        return self.groups // self.inner

    @property
    def kernel_rows(self) -> int:
        """Rows of the kernel memory."""
        return self.passes * self.on_array.pass_rows

    @property
    def beats(self) -> int:
        """Cycles in which the array works on the layer, a frame."""
        return self.on_array.counts.taps * self.tuple_part.words * self.groups

    @property
    def last_units(self) -> int:
        """Steps of the last kernel group, each level counted once."""
        rest = self.layer.out_channels - (self.groups - 1) * self.npu.array.kgp
        return -(-rest // self.npu.results.ol)

    @property
    def activation_steps(self) -> WordLayout:
        """(steps, ol) of its results that have a row in the activation's memory: none where sums leave."""
        return self.steps[:0] if self.layer.raw else self.steps

    @property
    def positions(self) -> int:
        """Positions of the map that it makes."""
        return self.sequencers[-1].counts.windows

    @property
    def map_words(self) -> int:
        """Words of the map that it makes."""
        return self.positions * len(self.output)


def words_read(layer: LoweredLayer, maps: Mapping[str, MapWords], ways: Mapping[str, MapWay]) -> MapWords:
    """The words that a lowered layer reads.

    Parameters
    ----------
    layer
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
    first = maps[layer.reads]
    skipped = layer.reads in ways and ways[layer.reads].skip_reader == layer.name
    if layer.joins is None:
        return replace(first, inlet="skip") if skipped else first
    second = maps[layer.joins]
    lanes = int(first.layout.max()) + 1
    second = replace(second, layout=np.where(second.layout == UNUSED, UNUSED, second.layout + lanes))
    if skipped:
        first, second = second, first
    layout = np.concatenate([first.layout, second.layout])
    codes = np.concatenate([first.codes, second.codes])
    return MapWords(layout, codes, first.inlet, (len(first.layout), len(second.layout)))


def windows_read(read: MapWords, formed: FormedWindows) -> MapWords:
    """The words that a window former makes of a map whose positions come in a word each."""
    lanes = read.layout[0, : formed.channels]
    layout = formed.layout()
    tap, lane = np.divmod(layout, formed.channels)
    layout = np.where(layout == UNUSED, UNUSED, tap * formed.channels + lanes[lane])
    return MapWords.of(layout, read.inlet)


def map_layout(layer: LoweredLayer, npu: Npu, reader_lanes: int) -> WordLayout:
    """(words, reader_lanes): what leaves for a window of a layer, in words of its reader; parameters as of
    `planned_layer`."""
    return _layouts(layer, npu, reader_lanes)[-1]


def _layouts(layer: LoweredLayer, npu: Npu, reader_lanes: int) -> tuple[WordLayout, WordLayout, WordLayout]:
    """The steps in which results leave, words for the pool unit (none without one), and words for the reader."""
    pfp = present(npu.pool_unit).pfp if npu.pools_results(raw=layer.raw, pool=layer.pool is not None) else 0
    widths = () if layer.raw else (pfp,) * (pfp > 0 and not npu.depthwise) + (reader_lanes,)
    return _regrouped(layer.out_channels, layer.levels, npu.array.kgp, npu.results.ol, pfp, widths)


@lru_cache(maxsize=1024)
def _regrouped(
    kernels: int, levels: int, kgp: int, ol: int, pfp: int, widths: tuple[int, ...]
) -> tuple[WordLayout, WordLayout, WordLayout]:
    """The steps of `result_layout`, their words of ``pfp`` lanes (none with 0), and the steps in words of each of
    ``widths``, one after the other. All are kept, and read-only."""
    steps = output = result_layout(kernels, levels, kgp, ol)
    pooled = regroup(steps, pfp) if pfp else steps[:0]
    for width in widths:
        output = regroup(output, width)
    for layout in (pooled, output):
        layout.flags.writeable = False
    return steps, pooled, output


def planned_layer(
    layer: LoweredLayer,
    number: int,
    npu: Npu,
    *,
    read: MapWords,
    inner: int,
    conv: StageTables,
    pool: StageTables | None,
    way: MapWay,
    reader_lanes: int,
    formed: FormedWindows | None = None,
    input_tables: StageTables | None = None,
    lines: FormedLines | None = None,
    pool_lines: FormedLines | None = None,
) -> PlannedLayer:
    """Plan a lowered layer; parameters as of the attributes of `PlannedLayer`, but for ``read``: the words of a map as
    they come to a line former.

    ``lines`` and ``pool_lines`` are what line formers make of lines of a kernel, of the layer and of its pool.

    ``conv`` and ``pool`` are the schedules of its convolution and of its pool, None where it has no pool.
    ``reader_lanes`` are those of the words that the layer's map is made of: kfp of the NPU that reads it.

    Raises
    ------
    ValueError
        The NPU can't accumulate as the layer does, or it has no pool unit for the layer's pool.
    """
    if npu.array_forms_lines:
        read, lines = _taken(layer, npu, read, lines, len(conv.input_order))
    check_accumulation(layer, npu, read.layout)
    groups = npu.array.groups(layer.out_channels)
    whole = TuplePart(len(read.layout)), 0
    shortest = tuple_part(layer.weighted_lanes, read.layout, npu.array.kgp) if inner == 1 else whole
    part, left_out = shortest if npu.sequencer.tuple_parts else whole
    if layer.pool and not npu.pool_unit:
        raise ValueError(f"{layer.name}: a pool needs an NPU with a pool unit, got one without")
    steps, pooled, output = _layouts(layer, npu, reader_lanes)
    sequencer = npu.array_sequencer
    on_array = OnSequencer(
        sequencer=sequencer,
        taps=SequencerTaps(conv, sequencer.kind, visits=layer.visits, reread=groups > inner),
        words=len(read.layout),
        tap_rows=part.words * layer.visits * inner,
        lines=lines,
    )
    on_pool_unit = None
    if len(pooled) and (behind := npu.pool_sequencer):
        if pool:
            taps = SequencerTaps(pool, behind.kind)
        else:
            taps = SequencerTaps.straight(on_array.counts.windows, behind.kind)
        words = len(pooled)
        if npu.pool_forms_lines and not pool_lines:
            pool_lines = FormedLines.straight(on_array.counts.windows * words, flags=layer.reduction.line_flags)
        elif pool_lines:
            pool_lines = replace(pool_lines, words=words)
        on_pool_unit = OnSequencer(sequencer=behind, taps=taps, words=words, tap_rows=words, lines=pool_lines)
    return PlannedLayer(
        layer=layer,
        number=number,
        npu=npu,
        way=way,
        read=read,
        formed=formed,
        input_tables=input_tables or conv,
        inner=inner,
        tuple_part=part,
        left_out=left_out,
        gains_by_tuple_parts=shortest[0].words < len(read.layout),
        on_array=on_array,
        on_pool_unit=on_pool_unit,
        steps=steps,
        pooled=pooled,
        output=output,
    )


def _taken(
    layer: LoweredLayer, npu: Npu, read: MapWords, lines: FormedLines | None, tuples: int
) -> tuple[MapWords, FormedLines]:
    """The words of a map as the array of an NPU with a line former takes them, and what the former makes; ``tuples``:
    those of the map, where ``lines`` of a kernel are not formed. Words from the host come as the array takes them."""
    array = npu.array
    if lines:
        layout = taps_side_by_side(read.layout, array.beat.places(lines.window)[:, 0], layer.map_channels)
        return replace(read, layout=layout), replace(lines, words=len(layout))
    words = len(read.layout)
    if read.inlet == "host":
        return read, FormedLines.straight(tuples * words, flags=frozenset({"whole"}))
    layout = words_side_by_side(read.layout, array.line_taps)
    codes = np.zeros(len(layout), np.int64)
    return replace(read, layout=layout, codes=codes), FormedLines.gathered(tuples, words, array.line_taps)


def check_accumulation(layer: LoweredLayer, npu: Npu, layout: WordLayout) -> None:
    """Check that an NPU can accumulate as a lowered layer does.

    Parameters
    ----------
    layer
        The lowered layer.
    npu
        The NPU.
    layout
        (words of a tuple, lanes of a word): channels of the map that it reads, or UNUSED.

    Raises
    ------
    ValueError
        The NPU accumulates in another way, or its words don't fit the layer's.
    """
    accumulate = layer.arithmetic.accumulate
    if accumulate not in npu.array.reducer.accumulations:
        needed = "with word_lanes" if accumulate == "or_words" else f"that accumulates {accumulate} or both"
        got = npu.value("word_lanes" if accumulate == "or_words" else "accumulate")
        raise ValueError(f"{layer.name}: accumulate {accumulate} needs an NPU {needed}, got {got}")
    if accumulate == "or_words":
        _check_words(layer, npu, layout)


def _check_words(layer: LoweredLayer, npu: Npu, layout: WordLayout) -> None:
    """ValueError unless the channels of each word of a layer, and no others, lie in ``word_lanes`` lanes of the NPU."""
    word_channels = layer.arithmetic.word_channels
    word_lanes = npu.value("word_lanes")
    if word_lanes < word_channels:
        raise ValueError(
            f"{layer.name}: accumulate or_words with words of {word_channels} channels needs an NPU with word_lanes >= "
            f"{word_channels}, since a PE takes the OR of a word in one beat, got word_lanes = {word_lanes} and kfp = "
            f"{npu.array.kfp}"
        )
    groups = layout.reshape(-1, word_lanes)  # a row for each OR of the PE in a beat
    words = np.where(groups == UNUSED, UNUSED, groups // word_channels)
    count = -(-layer.weight.shape[2] // word_channels)
    places = [set(np.nonzero((words == word).any(axis=1))[0].tolist()) for word in range(count)]
    if max(map(len, places)) > 1 or len(set().union(*places)) < count:
        raise ValueError(
            f"{layer.name}: each word of {word_channels} channels must fill a group of word_lanes = "
            f"{word_lanes} lanes alone, got {words.tolist()} as the words of the groups' lanes"
        )


def added_in_steps(words: WordLayout, steps: WordLayout) -> bool:
    """Whether a map in the skip store can be added to results as its words come: cut into steps, or put together to
    steps, they are the ``steps`` in which the results leave."""
    count, kfp = words.shape
    ol = steps.shape[1]
    return count == -(-len(steps) * ol // kfp) and np.array_equal(regroup(words, ol)[: len(steps)], steps)


def check_added(planned: PlannedLayer, maps: Mapping[str, MapWords]) -> None:
    """Raise ValueError unless the map that a layer adds, one of ``maps``, lies in the skip store as its results leave.

    A word is cut into steps, or some make one; what is left of a tuple's last word goes with the last step.
    """
    layer = planned.layer
    npu = planned.npu
    if npu.keeps_steps:
        _check_steps(layer, npu)
    if layer.adds is None or npu.keeps_steps:
        return
    array = npu.array
    ol = npu.results.ol
    steps = result_layout(layer.out_channels, layer.levels, array.kgp, ol)
    if not added_in_steps(maps[layer.adds].layout, steps):
        pfp = f", pfp = {npu.pool_unit.pfp}" if npu.pool_unit else ""
        raise ValueError(
            f"{layer.name}: words of the map of {layer.adds}, which it adds, must have the lanes of its results' "
            f"steps, got {layer.out_channels} channels with kfp = {array.kfp}, kgp = {array.kgp}, ol = {ol}{pfp}"
        )


def _check_steps(layer: LoweredLayer, npu: Npu) -> None:
    """ValueError unless the results of a binary layer whose bits are signs fill its steps. A lane without a channel
    must be 0, but what is added there would have a sign."""
    if not layer.binary or layer.scale is None:
        return
    if (result_layout(layer.out_channels, 1, npu.array.kgp, npu.results.ol) == UNUSED).any():
        raise ValueError(
            f"{layer.name}: channels of a map that is requantised must fill steps of ol = {npu.results.ol} results "
            f"of kgp = {npu.array.kgp} kernels, got {layer.out_channels}"
        )
