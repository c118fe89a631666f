"""Feature units: each has what stands elsewhere, a module and numbers of golden. And one that
is made up here, with all kinds of numbers, from golden to hardware."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from veriloggen import Cat

from bitloom.golden.encoding import Array, signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler import actions
from bitloom.hls_gen.compiler.actions import WIDTHS, UnitAction
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design import results
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of, memory_rows
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import FEATURE_UNITS, LOOKUP, REQUANTISATION, THRESHOLDS, Column
from bitloom.hls_gen.rtl.primitives.block import Block, bits, choose, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.results import LANES
from tests.graph_text import network_of
from tests.networks import random_model
from tests.rows import npu_rows
from tests.simulated import compare

BITS = 9
NPU = Npu.of(
    engine="integer", feature_bits=BITS, weight_bits=8, shift_bits=0, acc_bits=29, kfp=3, kgp=4, ol=2, pool=False
)


class Moved(Lookup):
    """result = entries[x mod 256] + start + offsets[channel], in 9 bits."""

    start = -3

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return super().array_shapes(source) | {"offsets": (source.channels,)}

    @property
    def array_ranges(self) -> dict[str, tuple[int, int]]:
        return super().array_ranges | {"offsets": (-40, 40)}

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        y: Array = super().forward(x, arrays, source) + self.start + arrays["offsets"]
        return (y - self.encoding.low) % (1 << BITS) + self.encoding.low


MOVES = replace(
    LOOKUP,
    layer=Moved,
    of_layer={"start": Column(bits=4, of="start")},
    of_channel={"offset": Column(bits="value_bits", of="offsets")},
)


def lane(library, npu):
    """The module of a lane; numbers are 0 in other layers."""
    w = npu.value_bits
    memory = memory_of(npu, "lookups")
    b = Block(library.name("moved", npu), Header("Made up.", rate="", latency="", parameters={}), reset=False)
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    move = b.input("move")
    feature = b.input("feature", w)
    table = b.input("table_number")
    marked = b.input("looks_up")
    start = b.input("start", 4)
    offset = b.input("offset", w)
    entry = library.loadable(b, memory, bus, Cat(table, bits(feature, 0, 8)), read=move)["entry"]
    same = b.reg("same", w, init=None)
    result = b.output_reg("result", w, init=None)
    moved = choose(marked, entry, same, w) + sign_extend(start, w) + offset
    b.on(move, (same, feature), (result, moved))
    return b


@pytest.fixture
def moves_unit(monkeypatch):
    """The table of feature units has the unit of this file."""
    for module in (results, actions):
        monkeypatch.setattr(module, "FEATURE_UNITS", (MOVES,))
    monkeypatch.setitem(actions.FUNCTIONS, Moved, UnitAction.of)
    monkeypatch.setitem(LANES, Moved, lane)
    memory_rows.cache_clear()
    memory_map.cache_clear()
    yield
    memory_rows.cache_clear()
    memory_map.cache_clear()


def model() -> Model:
    return random_model(
        network_of(
            "5x4x3 s8",
            "conv_1 5 2x2 s4, act_1 s8",
            Moved(name="moved_1", encoding=signed(BITS)),
            "conv_2 6 1x1 s4, act_2 s8, conv_3 5 1x1 s4, act_3 s8",
            Moved(name="moved_3", encoding=signed(BITS)),
            "dense 3 s4",
        ),
        3,
        32,
    )


def test_each_has_a_module():
    assert LANES.keys() == {unit.layer for unit in FEATURE_UNITS}


@pytest.mark.parametrize("unit", FEATURE_UNITS, ids=lambda unit: unit.mark)
def test_columns_are_of_golden(unit):
    layer = unit.layer(name="layer", encoding=signed(8))
    arrays = layer.array_shapes_of([Map(height=1, width=1, channels=1, encoding=signed(8))])
    columns = {**unit.of_layer, **unit.of_channel, **(unit.table.columns if unit.table else {})}
    assert all(column.of in arrays or hasattr(layer, column.of) for column in columns.values())
    if unit.table:
        assert {arrays[column.of] for column in unit.table.columns.values()} == {(unit.table.rows,)}


def test_no_two_units_have_a_name_in_common():
    """A field of the same name would take the other one's place in the row."""
    fields = [
        name
        for unit in (THRESHOLDS, REQUANTISATION, *FEATURE_UNITS)
        for name in (*unit.of_layer, *unit.of_channel, *([unit.mark] if unit in FEATURE_UNITS else []))
    ]
    stages = [*REQUANTISATION.stages, *(stage for unit in FEATURE_UNITS for stage in unit.stages)]
    assert (len(set(fields)), len(set(stages))) == (len(fields), len(stages))


@pytest.mark.parametrize(
    ("column", "numbers", "bits"),
    [
        (Column(bits="results.half_even", signed=False), 0, 0),
        (Column(bits="results.half_even", signed=False), 1, 1),
        (Column(bits="results.multiplier_bits", signed=False, none=1), np.array([1, 1]), 0),
        (Column(bits="results.multiplier_bits", signed=False, none=1), np.array([[1], [8]]), 4),
        (Column(bits="stores.skip.factor_bits", none=1), 1, 0),
        (Column(bits="stores.skip.factor_bits", none=1), 0, 1),
        (Column(bits="stores.skip.bias_bits"), np.array([-8, 7]), 4),
        (Column(bits="stores.skip.bias_bits"), np.array([-9, 7]), 5),
        (Column(bits="stores.skip.bias_bits"), np.array([3, 8]), 5),
    ],
)
def test_width_that_numbers_need(column, numbers, bits):
    assert column.width_for(numbers) == bits
    assert column.bits in WIDTHS


def test_rows_of_a_unit_that_is_made_up(moves_unit):
    """Channels lie in steps of 2 results; other layers and lanes without a channel have 0."""
    network = model()
    npu = size_memories("d", [network], [NPU]).npus[0]
    offsets = network.arrays["moved_1"]["offsets"].tolist()
    layers = npu_rows(plan(network, [npu]))
    assert [(rows.row("results")["looks_up"], rows.row("results")["start"]) for rows in layers] == [
        (1, -3),
        (0, 0),
        (1, -3),
        (0, 0),
    ]
    first, second, _, last = (rows.memories["scales"] for rows in layers)
    assert [first[f"offset_{lane}"].tolist() for lane in range(2)] == [offsets[::2], [*offsets[1::2], 0]]
    assert [second[f"offset_{lane}"].tolist() for lane in range(2)] == [[0] * 3] * 2
    assert [last[f"offset_{lane}"].tolist() for lane in range(2)] == [[]] * 2
    widths = memory_of(npu, "results").widths | memory_of(npu, "scales").widths
    assert (widths["start"], widths["offset_0"], widths["offset_1"]) == (4, BITS, BITS)


def test_a_unit_that_is_made_up_on_hardware(moves_unit):
    network = model()
    compare(size_memories("d", [network], [NPU]), network)
