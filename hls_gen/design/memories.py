"""Memories that the stream program fills: which of them an NPU has, how large they are, and what their rows hold.

The hardware makes its memories by this map, the manifest carries it, the compiler fills rows by it, and the driver
checks packets against it (docs/reference/device.md, "Memories").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .addition import addition_row
from .depthwise import depthwise_memories, kernel_moves, pool_kernel_fields, scale_row
from .fields import Field, named
from .parts import present
from .tuple_parts import part_fields
from .widths import COUNT_BITS, FRAME_BITS, KERNEL_BITS, LAYER_BITS, PLACE_BITS, SIDE_BITS, TAIL_BITS, bits_for
from .window_former import former_row

if TYPE_CHECKING:
    from .npu import Npu

Parts = list[tuple[str, int]]
"""Parts of a row: name and width of each, low bits first."""
READ_AT_ONCE = frozenset(
    {
        "inputs",
        "layers",
        "results",
        "pool_inputs",
        "pool_layers",
        "chunks",
        "binariser",
        "reciprocals",
        "additions",
        "pool_results",
    }
)
"""Memories that are read in the cycle in which the row's number is there, so that they can't be block RAM."""


@dataclass(frozen=True)
class Memory:
    """A memory that LOAD packets fill.

    Attributes
    ----------
    name
        Name, used once in an NPU.
    id
        Number by which packets name it, 0..255.
    depth
        Rows, >= 1.
    fields
        Parts of a row, low bits first, without gaps.
    """

    name: str
    id: int
    depth: int
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, name: str, id: int, depth: int, parts: Sequence[tuple[str, int]]) -> "Memory":
        """The memory whose rows have these parts, (name, width), low bits first."""
        return cls(name, id, depth, _side_by_side(tuple(parts)))

    @property
    def width(self) -> int:
        """Bits of a row."""
        last = self.fields[-1]
        return last.lsb + last.width

    @property
    def widths(self) -> dict[str, int]:
        """Width of each field by name, low bits first."""
        return {field.name: field.width for field in self.fields}

    @property
    def read_at_once(self) -> bool:
        """Whether a row is there in the cycle in which its number is; else it comes a cycle later."""
        return self.name in READ_AT_ONCE

    @property
    def words(self) -> int:
        """32-bit words that hold a row: ceil(width / 32)."""
        return -(-self.width // 32)

    def field(self, name: str) -> Field:
        """Look up a field.

        Parameters
        ----------
        name
            The field's name.

        Returns
        -------
        Field
            The field of that name.

        Raises
        ------
        KeyError
            There is none; the message lists those that there are.
        """
        return named(self.fields, name, f"memory {self.name}: field")

    def to_dict(self) -> dict[str, Any]:
        """JSON data for the manifest."""
        fields = [[field.name, field.lsb, field.width] for field in self.fields]
        return {"name": self.name, "id": self.id, "depth": self.depth, "width": self.width, "fields": fields}


@lru_cache(maxsize=4096)
def _side_by_side(parts: tuple[tuple[str, int], ...]) -> tuple[Field, ...]:
    """Fields with these names and widths, low bits first. A search makes the same rows for many NPUs."""
    fields = []
    low = 0
    for name, width in parts:
        fields.append(Field(name, low, width))
        low += width
    return tuple(fields)


@lru_cache(maxsize=256)
def memory_map(npu: "Npu") -> tuple[Memory, ...]:
    """Every loadable memory of an NPU.

    Parameters
    ----------
    npu
        The NPU.

    Returns
    -------
    tuple of Memory
        By id, which counts from 0: which memories there are depends on engine, pool, binariser and inlets.
    """
    rows: list[tuple[str, int, Parts]] = [
        ("network", 1, _network_row(npu)),
        ("inputs", npu.loader.layers, _input_row(npu)),
        ("layers", npu.loader.layers, _layer_row(npu)),
        ("flags", npu.sequencer.taps, [*TAP_FLAGS, ("jump", 1)]),
        ("olds", npu.sequencer.olds, [("word", bits_for(npu.sequencer.tuple_words - 1))]),
        ("jumps", npu.sequencer.jumps, [("row", npu.array.row_bits)]),
        ("kernels", npu.array.kernel_rows, _sent_kernel_row(npu)),
        ("results", npu.loader.layers, _result_row(npu)),
    ]
    if not npu.requantises:
        rows.append(("thresholds", npu.results.threshold_rows, [("thresholds", npu.results.ol * npu.array.acc_bits)]))
    else:
        rows.append(("scales", npu.results.threshold_rows, scale_row(npu)))
    if npu.pool_unit:
        rows += [
            ("pool_inputs", npu.loader.layers, [("words", bits_for(npu.sequencer.input_words))]),
            ("pool_layers", npu.loader.layers, _pool_row(npu)),
            ("pool_flags", present(npu.pool_unit).taps, [*TAP_FLAGS, *([("jump", 1)] if npu.depthwise else [])]),
            ("pool_olds", present(npu.pool_unit).olds, [("word", present(npu.pool_unit).address_bits)]),
        ]
    if npu.ports.binariser:
        rows.append(
            (
                "binariser",
                present(npu.ports.binariser).rows,
                [("thresholds", npu.array.kfp * (present(npu.ports.binariser).bits + 1))],
            )
        )
    if "ring" in npu.ports.inlets:
        rows.append(("chunks", npu.loader.layers, [("words_minus_1", bits_for(npu.ports.buffer_words - 1))]))
    if npu.engine == "integer" and npu.pool_unit:
        rows.append(("reciprocals", 1 << COUNT_BITS, [("reciprocal", npu.reciprocal_bits)]))
    if npu.has_skip:
        rows.append(("additions", npu.loader.layers, addition_row(npu)))
    if npu.sequencer.aheads:
        rows.append(("aheads", npu.sequencer.aheads, [("words", bits_for(npu.sequencer.input_words))]))
    if npu.depthwise:
        rows += depthwise_memories(npu, ROUNDING)
    return tuple(Memory.of(name, id, depth, parts) for id, (name, depth, parts) in enumerate(rows))


ROUNDING = ("half_even", "round_twice")
"""How a layer rounds, each in NPUs alone that have the capacity of the same name."""

TAP_FLAGS: Parts = [("last", 1), ("new", 1), ("skip", 1)]
"""Row of a tap in a sequencer's table: last of its window; reads a tuple that arrives; only lets one come by. With a
table ``aheads`` the third one says that the tap claims what the table's next row has, beside its own tuple."""


def _network_row(npu: "Npu") -> Parts:
    """The one row that describes the network, and the frame where it enters here, to the loader."""
    host = "host" in npu.ports.inlets
    return [
        *([("frame_words", FRAME_BITS), ("frame_beats", FRAME_BITS)] if host else []),
        ("last_layer", LAYER_BITS),
        *([("last_pool_layer", LAYER_BITS)] if npu.pool_unit else []),
        *([("frame_tail", TAIL_BITS)] if host else []),
        *([("binariser_last", bits_for(present(npu.ports.binariser).rows - 1))] if npu.ports.binariser else []),
        *([("last_chunk", LAYER_BITS)] if "ring" in npu.ports.inlets else []),
        *([("streamed_layers", LAYER_BITS + 1)] if npu.loader.stream_weights and host else []),
        *former_row(npu),
    ]


def _input_row(npu: "Npu") -> Parts:
    """A layer to the side that writes the tuple memory: words of its map, and the inlet by which they come; of two maps
    side by side words of both, the inlet of the first, and how many words of a tuple are of each."""
    part = bits_for(npu.joined_words - 1) if npu.joined_words else 0
    return [
        ("words", bits_for(npu.sequencer.input_words)),
        *([("source", npu.source_bits)] if npu.source_bits else []),
        *([("joins", 1), ("first_words_minus_1", part), ("second_words_minus_1", part)] if part else []),
    ]


def _reading_row(npu: "Npu", index: int, ring: int, taps: int, olds: int, one_by_one: bool) -> Parts:
    """Fields that both sequencers, array's and pool's, have of a layer.

    ``index`` is the width of a word's number in its tuple, ``ring`` that of its address. ``one_by_one``: tuples are
    claimed one at a time, so that they are counted; else words are.
    """
    return [
        ("words_minus_1", index),
        *([("hold_tuples", ring + 1)] if one_by_one else []),
        ("hold_words", ring + 1),
        ("direct", 1),
        ("window_taps_minus_1", bits_for(npu.sequencer.window_taps - 1)),
        ("windows_minus_1", bits_for(npu.sequencer.windows - 1)),
        ("flags_base", bits_for(taps - 1)),
        ("old_base", bits_for(olds - 1)),
    ]


def _layer_row(npu: "Npu") -> Parts:
    """A layer to the array's sequencer."""
    ring = bits_for(npu.sequencer.tuple_words - 1)
    row = npu.array.row_bits
    binary = npu.engine == "binary"
    parts = [
        *_reading_row(npu, ring, ring, npu.sequencer.taps, npu.sequencer.olds, npu.sequencer.claims_one_by_one),
        ("jump_base", bits_for(npu.sequencer.jumps - 1)),
        *([("ahead_base", bits_for(npu.sequencer.aheads - 1))] if npu.sequencer.aheads else []),
        *((name, row) for name in ("start_row", "kernel_base", "group_rows")),
        ("groups_minus_1", bits_for(npu.sequencer.groups - 1)),
        *part_fields(npu),
        *([("tap_offset", npu.array.acc_bits)] if binary else []),
        *(
            [("inner_groups_minus_1", npu.array.slot_bits), ("tap_rows_minus_1", row)]
            if npu.array.accumulators > 1
            else []
        ),
        *([("kernel_stream", 1)] if npu.loader.stream_weights else []),
    ]
    if npu.sequencer.raster:
        parts += [*_counter_parts(ring), *([("twice", 1)] if binary else []), *kernel_moves(row)]
    return parts


def _pool_row(npu: "Npu") -> Parts:
    """A layer to the pool's sequencer, which also knows where its map goes."""
    pool_unit = present(npu.pool_unit)
    ring = pool_unit.address_bits
    return [
        *_reading_row(
            npu,
            pool_unit.index_bits,
            ring,
            pool_unit.taps,
            pool_unit.olds,
            not npu.sequencer.raster,
        ),
        *way(npu),
        *([("average", 1)] if npu.engine == "integer" else []),
        *(_counter_parts(ring) if npu.sequencer.raster else []),
        *(pool_kernel_fields(npu) if npu.depthwise else []),
    ]


def _counter_parts(ring: int) -> Parts:
    """What counters run by (hls_gen/rtl/sequencer/raster.py, hls_gen/compiler/rows/sequencer.py)."""
    made: Parts = [("by_counters", 1), ("x_room_end", SIDE_BITS)]
    for axis in "xy":
        made += [(f"{axis}_{what}", PLACE_BITS) for what in ("kernel_minus_1", "stride", "lead", "fresh")]
        made += [(f"{axis}_room", SIDE_BITS), (f"{axis}_step", ring), (f"{axis}_cross", ring)]
    return [*made, ("line_words", ring), ("gap_words", ring + 1)]


@lru_cache(maxsize=256)
def kernel_store(npu: "Npu") -> Memory:
    """Memory ``kernels`` as the NPU stores it: where a binariser stands in front of it, rows come in another form.

    Parameters
    ----------
    npu
        The NPU.

    Returns
    -------
    Memory
        Name, id and depth of the loadable memory, and the fields of what its RAM holds.
    """
    sent = npu.memory("kernels")
    return Memory.of(sent.name, sent.id, sent.depth, kernel_row(npu))


def _sent_kernel_row(npu: "Npu") -> Parts:
    """A row of weights as it is loaded: to a binariser each bit of `kernel_row` is an integer, below 0 for a 0."""
    return [(name, w * KERNEL_BITS if npu.array.kernel_binariser else w) for name, w in kernel_row(npu)]


def kernel_row(npu: "Npu") -> Parts:
    """Weights of all PEs for a word, and how the word's sums count."""
    weights = ("weights", npu.array.kgp * npu.array.row_weights * npu.array.weight_bits)
    return [weights, *([("code", npu.code_bits)] if npu.code_bits else [])]


def _result_row(npu: "Npu") -> Parts:
    """A layer to the results unit."""
    limits = [("double", 1)] if npu.engine == "binary" else []
    limits += [(name, npu.value_bits) for name in ("low", "high") if npu.requantises]
    rounding = [(name, 1) for name in ROUNDING if npu.requantises and npu.value(name)]
    return [
        ("groups_minus_1", bits_for(npu.sequencer.groups - 1)),
        ("last_units_minus_1", bits_for(npu.units - 1)),
        ("windows_minus_1", bits_for(npu.sequencer.windows - 1)),
        ("levels_minus_1", bits_for(npu.results.levels - 1)),
        ("threshold_base", bits_for(npu.results.threshold_rows - 1)),
        *([("raw", 1)] if "host" in npu.ports.outlets else []),
        *([] if npu.pool_unit else way(npu)),
        *limits,
        *rounding,
    ]


def way(npu: "Npu") -> Parts:
    """Where a layer's map goes, in the row of the unit that gives it its last form: its target; whether its words go
    to the skip store as well; whether they wait there for the addition, else for the layer that reads them."""
    skip = [("forks", 1), ("for_addition", 1)] if npu.forks_maps else []
    return [*([("target", npu.target_bits)] if npu.target_bits else []), *skip]
