"""Parameters of a design: every rule has a message, and what follows from the parameters is stated here once more."""

import json
from dataclasses import replace
from operator import attrgetter

import pytest

from bitloom.hls_gen.compiler.fitted import FORMER
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.flat import PLACES
from bitloom.hls_gen.design.memories import memory_map as memory_maps
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from tests.errors import value_error

REQUANTISES = "needs engine integer or a skip store"
"""The rule of values of a requantisation."""
BAD = {
    "engine": ("ternary", "npu: engine must be binary or integer, got 'ternary'"),
    "feature_bits": (2, "npu: feature_bits must be 1 for engine binary, got 2"),
    "weight_bits": (0, "npu: weight_bits must be 1 for engine binary, got 0"),
    "kfp": (0, "npu: kfp must be an integer >= 1, got 0"),
    "line_taps": (3, "npu: line_taps must divide kfp = 8, got 3"),
    "position_words": (0, "npu: position_words must be an integer >= 1, got 0"),
    "kgp": (-3, "npu: kgp must be an integer >= 1, got -3"),
    "pfp": ("8", "npu: pfp must be an integer >= 1, got '8'"),
    "pool_scale_ram": ("ultra", "npu: pool_scale_ram needs a pool unit with weights (depthwise), got ultra"),
    "pool_line_taps": (17, "npu: pool_line_taps must be 1..16, got 17"),
    "pool_lines": (0, "npu: pool_lines must be 1..16, got 0"),
    "pool_lane_lines": (3, "npu: pool_lane_lines must divide pfp = 8, got 3"),
    "pool_line_words": (1, "npu: pool_line_words must be an integer >= 2, got 1"),
    "ol": (9, "npu: ol must be <= kgp = 8, got 9"),
    "accumulate": ("and", "npu: accumulate must be one of popcount, or, both, or_words, got 'and'"),
    "collect": (-8, "npu: collect must be an integer >= 0, got -8"),
    "acc_bits": (33, "npu: acc_bits must be 4..32, got 33"),
    "planes": (10, "npu: planes must be 0 or 2..9, got 10"),
    "shift_bits": (5, "npu: shift_bits must be 0..4, got 5"),
    "accumulators": (3, "npu: accumulators must be a power of two 1..256, got 3"),
    "binariser_bits": (10, "npu: binariser_bits must be 0 or 2..9, got 10"),
    "binariser_rows": (1, "npu: binariser_rows needs a binariser, got 1"),
    "multiplier_bits": (32, f"npu: multiplier_bits {REQUANTISES}, got 32"),
    "bias_fraction_bits": (17, f"npu: bias_fraction_bits {REQUANTISES}, got 17"),
    "half_even": (2, f"npu: half_even {REQUANTISES}, got 2"),
    "map_products": (2, "npu: map_products needs a skip store, got 2"),
    "round_twice": (2, f"npu: round_twice {REQUANTISES}, got 2"),
    "lookup_rows": (256, "npu: lookup_rows must be 0 for engine binary, got 256"),
    "skip_words": (1, "npu: skip_words must be 0 or >= 2, got 1"),
    "skip_bits": (10, "npu: skip_bits needs a skip store, got 10"),
    "skips_onward": (2, "npu: skips_onward needs a skip store, got 2"),
    "tuple_parts": (2, "npu: tuple_parts must be 0..1, got 2"),
    "aheads": (1, "npu: aheads must be 0 or >= 2, got 1"),
    "joined_words": (1, "npu: joined_words needs a skip store, got 1"),
    "add_factor_bits": (26, "npu: add_factor_bits needs a skip store, got 26"),
    "add_bias_bits": (41, "npu: add_bias_bits needs a skip store, got 41"),
    "pool_tuple_words": (0, "npu: pool_tuple_words must be an integer >= 1, got 0"),
    "lanes_per_weight": (9, "npu: lanes_per_weight * lane_step must be <= kfp = 8, got 9"),
    "lane_step": (0, "npu: lane_step must be an integer >= 1, got 0"),
    "layers": (257, "npu: layers must be <= 256, got 257"),
    "outputs": (257, "npu: outputs must be 1..256, got 257"),
    "tuple_words": (24, "npu: tuple_words must be a power of two >= 2, got 24"),
    "pool_words": (1, "npu: pool_words must be a power of two >= 2, got 1"),
    "taps": (1, "npu: taps must be an integer >= 2, got 1"),
    "olds": (1, "npu: olds must be an integer >= 2, got 1"),
    "jumps": (1, "npu: jumps must be an integer >= 2, got 1"),
    "pool_taps": (1, "npu: pool_taps must be an integer >= 2, got 1"),
    "pool_olds": (1, "npu: pool_olds must be an integer >= 2, got 1"),
    "kernel_rows": (1, "npu: kernel_rows must be an integer >= 2, got 1"),
    "threshold_rows": (1, "npu: threshold_rows must be an integer >= 2, got 1"),
    **{
        name: (1, f"npu: {name} must be an integer >= 2, got 1")
        for name in ("windows", "window_taps", "groups", "levels", "input_words")
    },
    "kernel_ram": ("flash", "npu: kernel_ram must be one of auto, block, distributed, got 'flash'"),
    "map_words": (1, "npu: map_words must be an integer >= 2, got 1"),
    "buffer_words": (1, "npu: buffer_words must be a power of two >= 2, got 1"),
    "inlets": (("loop", "host"), "npu: inlets must be some of host, ring, loop, in this order, got ('loop', 'host')"),
    "outlets": (("host", "loop"), "npu: outlets must be some of ring, loop, host, in this order, got ('host', 'loop')"),
    "pool": (1, "npu: pool must be True or False, got 1"),
    "raster": (1, "npu: raster must be True or False, got 1"),
    "stream_weights": (1, "npu: stream_weights must be True or False, got 1"),
    "one_memory": (1, "npu: one_memory must be True or False, got 1"),
    "kernel_binariser": (1, "npu: kernel_binariser must be True or False, got 1"),
    "window_former": (1, "npu: window_former must be True or False, got 1"),
    **{name: (-1, f"npu: {name} needs a window former, got -1") for name in FORMER},
    "word_lanes": (-1, "npu: word_lanes must be an integer >= 0, got -1"),
    "depthwise": (True, "npu: depthwise needs engine integer, got binary"),
    "pool_jumps": (1, "npu: pool_jumps needs a pool unit with weights (depthwise), got 1"),
    "pool_kernel_rows": (1, "npu: pool_kernel_rows needs a pool unit with weights (depthwise), got 1"),
    "pool_scale_rows": (1, "npu: pool_scale_rows needs a pool unit with weights (depthwise), got 1"),
    "lut_products": (("addition",), "npu: lut_products must be () for engine binary, got ('addition',)"),
    "kernels_per_multiplier": (2, "npu: kernels_per_multiplier must be 1 for engine binary, got 2"),
}
"""One bad value of every parameter."""

SIZES = {"former_channels": 3, "former_column": 9, "former_columns": 3, "former_line": 10}
KEEPS = {"skip_words": 9, "skip_bits": 2}
INTEGER = {"engine": "integer", "feature_bits": 8, "weight_bits": 5, "shift_bits": 0, "acc_bits": 20}

DEPTHWISE = {**INTEGER, "depthwise": True, "multiplier_bits": 31}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value(name):
    value, message = BAD[name]
    with value_error(message):
        Npu.of(**{name: value})


def test_every_parameter_has_a_bad_value():
    assert set(BAD) == set(PLACES)


INLETS = "inlets must be some of host, ring, loop, in this order, got"
OUTLETS = "outlets must be some of ring, loop, host, in this order, got"
LOOP = "loop must be inlet and outlet or neither, got"
FORMED = {"window_former": True, **SIZES}
OTHER_INLETS = [(), ("host", "host"), ("host", "pool"), "host", ("ring", "host", "loop")]
OTHER_OUTLETS = [(), ("loop", "ring"), ("host", "host")]
BEHIND_RING = {"window_former": True, "inlets": ("ring",), "outlets": ("ring",)}
RULES = [
    ({"kfp": 8.0}, "kfp must be an integer >= 1, got 8.0"),
    ({"planes": -1}, "planes must be 0 or 2..9, got -1"),
    ({"planes": 1}, "planes must be 0 or 2..9, got 1"),
    ({"planes": 8}, "planes must be 0 or below kfp = 8, got 8"),
    ({"planes": 2, "kfp": 2}, "planes must be 0 or below kfp = 2, got 2"),
    ({"planes": 9, "kfp": 9}, "planes must be 0 or below kfp = 9, got 9"),
    ({"kfp": 10**12}, "acc_bits must be >= 41 for kfp = 1000000000000, got 16"),
    ({"shift_bits": -1}, "shift_bits must be 0..4, got -1"),
    ({"acc_bits": 3}, "acc_bits must be 4..32, got 3"),
    ({"acc_bits": 7, "kfp": 64}, "acc_bits must be >= 8 for kfp = 64, got 7"),
    ({**INTEGER, "feature_bits": 21}, "feature_bits must be 2..20, got 21"),
    ({**INTEGER, "weight_bits": 1}, "weight_bits must be 2..8, got 1"),
    ({**INTEGER, "planes": 2}, "planes must be 0 for engine integer, got 2"),
    ({**INTEGER, "shift_bits": 3}, "shift_bits must be 0 for engine integer, got 3"),
    ({**INTEGER, "acc_bits": 15, "kfp": 5}, "acc_bits must be >= 16 for kfp = 5, got 15"),
    ({"tuple_words": 1}, "tuple_words must be a power of two >= 2, got 1"),
    ({"layers": 1}, "layers must be an integer >= 2, got 1"),
    ({"ol": 2, "kgp": 1}, "ol must be <= kgp = 1, got 2"),
    ({"buffer_words": 24}, "buffer_words must be a power of two >= 2, got 24"),
    *(({"inlets": inlets}, f"{INLETS} {inlets!r}") for inlets in OTHER_INLETS),
    *(({"outlets": outlets}, f"{OUTLETS} {outlets!r}") for outlets in OTHER_OUTLETS),
    ({"outlets": ("host",)}, f"{LOOP} ('host', 'loop') and ('host',)"),
    ({"inlets": ("host",)}, f"{LOOP} ('host',) and ('loop', 'host')"),
    ({"inlets": ("ring", "loop"), "binariser_bits": 8}, "a binariser needs inlet host, got ('ring', 'loop')"),
    ({"one_memory": True, "stream_weights": True}, "one_memory must be False for stream_weights, got True"),
    ({"one_memory": True, "kernel_rows": 256}, "kernel_rows must be > tuple_words = 256 for one_memory, got 256"),
    ({**INTEGER, "kernel_binariser": True}, "kernel_binariser must be False for engine integer, got True"),
    (
        {"window_former": True, "inlets": ("ring", "loop")},
        "a window former needs inlet host, or ring alone, got ('ring', 'loop')",
    ),
    ({**INTEGER, "binariser_bits": 8}, "binariser_bits needs engine binary, got integer"),
    ({**INTEGER, "multiplier_bits": 32}, "multiplier_bits must be 0..31, got 32"),
    ({**INTEGER, "bias_fraction_bits": 17}, "bias_fraction_bits must be 0..16, got 17"),
    ({**INTEGER, "half_even": 2}, "half_even must be 0..1, got 2"),
    ({**INTEGER, "round_twice": 2}, "round_twice must be 0..1, got 2"),
    ({**KEEPS, "lookup_rows": 256}, "lookup_rows must be 0 for engine binary, got 256"),
    ({**KEEPS, "lut_products": ("pool",)}, "lut_products must be () for engine binary, got ('pool',)"),
    ({"binariser_bits": False}, "binariser_bits must be 0 or 2..9, got False"),
    ({"window_former": True, "binariser_bits": 8}, "binariser_bits must be 0 with a window former, got 8"),
    (SIZES, "former_channels needs a window former, got 3"),
    ({"window_former": True, "former_column": 9}, "former_channels must be an integer >= 1, got 0"),
    ({"window_former": True, "former_line": 9}, "former_line needs a window former with sizes, got 9"),
    ({"binariser_bits": 8, "binariser_rows": 1}, "binariser_rows must be an integer >= 2, got 1"),
    ({"pool": False, "pfp": 4}, "pfp needs a pool unit, got 4"),
    ({**KEEPS, "skip_bits": 10}, "skip_bits must be 2..9, got 10"),
    ({**KEEPS, "skips_onward": 2}, "skips_onward must be 0..1, got 2"),
    ({**INTEGER, "skip_words": 9, "joined_words": 1}, "joined_words must be 0 or >= 2, got 1"),
    ({**KEEPS, "add_factor_bits": 26}, "add_factor_bits must be 2..25, got 26"),
    ({**KEEPS, "add_bias_bits": 41}, "add_bias_bits must be 2..40, got 41"),
    ({**FORMED, "former_channels": 9, "kfp": 8}, "former_channels must be <= 8, got 9"),
    ({**FORMED, "former_channels": 4, "kfp": 9, "planes": 2}, "former_channels must be <= 3, got 4"),
    ({**FORMED, "former_granule": 2}, "former_channels must be a multiple of 2, got 3"),
    ({**FORMED, "former_granule": 3, "kfp": 9, "planes": 2}, "former_granule must be 1 for planes = 2, got 3"),
    ({**FORMED, "former_line": 1}, "former_line must be an integer >= 2, got 1"),
    ({**FORMED, "lanes_per_weight": 2}, "lanes_per_weight must be 1 with a window former, got 2"),
    ({"line_taps": 2, "lanes_per_weight": 2}, "lanes_per_weight must be 1 for line_taps = 2, got 2"),
    ({"line_taps": 2, **BEHIND_RING}, "line_taps must be 1 with a window former behind inlet ring, got 2"),
    (
        {**INTEGER, "line_taps": 2, "skip_words": 9, "ol": 3},
        "ol must divide kfp / line_taps = 4, or be a multiple of it, for skip_words = 9, got 3",
    ),
    ({"pool": None}, "pool must be True or False, got None"),
    ({"depthwise": 1}, "depthwise must be True or False, got 1"),
    ({**DEPTHWISE, "pool": False}, "depthwise needs a pool unit, got True"),
    ({**DEPTHWISE, "pfp": 3, "ol": 2}, "ol must divide pfp = 3 for depthwise, got 2"),
    ({**DEPTHWISE, "feature_bits": 16}, "acc_bits must be >= 25 for kfp = 8, got 20"),
    ({**DEPTHWISE, "kfp": 1, "weight_bits": 2, "acc_bits": 14}, "acc_bits must be >= 15 for depthwise, got 14"),
]


@pytest.mark.parametrize(("parameters", "message"), RULES)
def test_rules_between_parameters(parameters, message):
    with value_error(f"npu: {message}"):
        Npu.of(**parameters)


ENDS = [{"kfp": 1, "kgp": 1, "pfp": 1, "acc_bits": 4}, {"kfp": 9, "planes": 8}, {"kfp": 3, "planes": 2}]
ENDS += [{"acc_bits": 8, "kfp": 64}, {"ol": 8, "kgp": 8}, {"layers": 256}, {"layers": 2}, {"tuple_words": 2}]
ENDS += [{"shift_bits": 0}, {"acc_bits": 32}, {"buffer_words": 2}, {"pool": False}]
ENDS += [INTEGER, {**INTEGER, "feature_bits": 2, "weight_bits": 2, "kfp": 1, "acc_bits": 5}]
ENDS += [{**INTEGER, "acc_bits": 16, "kfp": 5}, {**INTEGER, "pool": False}]
PORTS = [
    {"inlets": ("host",), "outlets": ("host",)},
    {"inlets": ("ring",), "outlets": ("ring",)},
    {"inlets": ("host", "ring", "loop"), "outlets": ("ring", "loop", "host")},
    {"inlets": ("ring", "loop"), "outlets": ("loop",)},
    {"inlets": ("host", "ring"), "binariser_bits": 8, "outlets": ("ring",)},
]


@pytest.mark.parametrize("parameters", [*ENDS, *PORTS], ids=str)
def test_the_ends_of_each_range_are_legal(parameters):
    Npu.of(**parameters)


@pytest.mark.parametrize("stream_bits", [0, 16, 31, 128, "32"])
def test_stream_bits(stream_bits):
    with value_error(f"d: stream_bits must be 32 or 64, got {stream_bits!r}"):
        Design(name="d", stream_bits=stream_bits)


@pytest.mark.parametrize("count", [0, 33])
def test_number_of_npus(count):
    with value_error(f"d: a design must have 1..32 NPUs, got {count}"):
        Design(name="d", npus=(Npu.of(),) * count)


@pytest.mark.parametrize("join", [pipeline, cascade, ring])
@pytest.mark.parametrize("count", [1, 2, 3, 32])
def test_chains_of_any_length(join, count):
    """Each way to join NPUs makes a design, also of different NPUs; only a ring of several is closed."""
    npus = [Npu.of(kfp=1 + n % 9, kgp=1 + n % 3, ol=1, pool=n % 2 == 0) for n in range(count)]
    design = Design(name="d", npus=join(npus))
    assert design.closed == (join is ring and count > 1)
    assert [n.array.kfp for n in design.npus] == [n.array.kfp for n in npus]
    assert [design.next_word_bits(n) for n in range(count)] == [npus[(n + 1) % count].array.kfp for n in range(count)]


HOST, END = Npu.of(inlets=("host",), outlets=("ring",)), Npu.of(inlets=("ring",), outlets=("host",))
MIDDLE = Npu.of(inlets=("ring",), outlets=("ring",))
OPEN = HOST.changed(inlets=("host", "ring"))


FIRST = "NPU 0 and no other must have inlet host, got"
LEADS = "inlet ring must lead on from outlet ring of the NPU before, got"
BOTH = ("ring", "host")
SEVERAL = f"outlet ring needs a design of several NPUs, got {BOTH} in one"
FEATURES = "NPU 1 must have the features of the NPU before, integer of 8 bits, got integer of 7"
STREAMS = "stream_weights must be the same in all NPUs, got"
SPILLS = "spill_words must be 0, or >= 2 where the last NPU leads to NPU 0, got"
CHAINS = [
    ((Npu.of(), Npu.of()), f"{FIRST} ('host', 'loop') in NPU 1"),
    ((END,), f"{FIRST} ('ring',) in NPU 0"),
    ((MIDDLE, END), f"{FIRST} ('ring',) in NPU 0"),
    ((HOST, MIDDLE.changed(inlets=("host", "ring")), END), f"{FIRST} ('host', 'ring') in NPU 1"),
    ((HOST, END, END), f"{LEADS} ('ring',) in NPU 2 after ('host',)"),
    ((HOST, Npu.of(inlets=("loop",))), f"{LEADS} ('loop',) in NPU 1 after ('ring',)"),
    ((HOST, MIDDLE), f"{LEADS} ('host',) in NPU 0 after ('ring',)"),
    ((OPEN, END), f"{LEADS} ('host', 'ring') in NPU 0 after ('host',)"),
    ((END.changed(inlets=("host", "ring")),), f"{LEADS} ('host', 'ring') in NPU 0 after ('host',)"),
    ((HOST.changed(outlets=BOTH),), SEVERAL),
    ((OPEN.changed(outlets=BOTH),), SEVERAL),
    ((HOST.changed(**INTEGER), END.changed(**{**INTEGER, "feature_bits": 7})), FEATURES),
    ((HOST.changed(stream_weights=True), END), f"{STREAMS} False in NPU 1"),
    ((HOST, END.changed(stream_weights=True)), f"{STREAMS} True in NPU 1"),
    ((Npu.of(kernel_rows=(1 << 23) + 1),), "kernels must have <= 8388608 rows, got 8388609"),
    ((Npu.of(outlets=("loop",)),), "an NPU must have outlet host, got none"),
    ((OPEN, MIDDLE), "an NPU must have outlet host, got none"),
]
CHAINS = [(npus, 0, message) for npus, message in CHAINS]
CHAINS += [(npus, 64, f"{SPILLS} 64") for npus in ((Npu.of(),), (HOST, END))]
CHAINS += [((OPEN, MIDDLE.changed(outlets=BOTH)), words, f"{SPILLS} {words}") for words in (1, -2)]


@pytest.mark.parametrize(("npus", "spill_words", "message"), CHAINS)
def test_what_a_chain_must_be(npus, spill_words, message):
    with value_error(f"d: {message}"):
        Design(name="d", npus=npus, spill_words=spill_words)


def test_ways_of_pipelines_cascades_and_rings():
    """As the specification joins them: (inlets, outlets) of each NPU."""
    ways = {
        join: [(n.ports.inlets, n.ports.outlets) for n in join([Npu.of()] * 3)] for join in (pipeline, cascade, ring)
    }
    later = (("ring",), ("ring", "host"))
    inside = (("ring", "loop"), ("ring", "loop", "host"))
    assert ways == {
        pipeline: [(("host",), ("ring",)), (("ring",), ("ring",)), (("ring",), ("host",))],
        cascade: [(("host", "loop"), ("ring", "loop", "host")), inside, (("ring", "loop"), ("loop", "host"))],
        ring: [(("host", "ring"), ("ring", "host")), later, later],
    }
    assert ring([Npu.of()]) == cascade([Npu.of()]) == (Npu.of(),)


LARGE = Npu.of(kfp=70, kgp=3, ol=2, planes=8, acc_bits=19, taps=5)
RING = ring([Npu.of(kfp=3, pool=False), Npu.of(buffer_words=64)])
DESIGNS = [Design(name="small"), Design(name="large", stream_bits=64, npus=(LARGE,))]
DESIGNS.append(Design(name="ring", npus=RING, spill_words=20))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_to_dict_and_back(design):
    data = design.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert Design.from_dict(data) == design
    assert Design.from_dict(json.loads(json.dumps(data))) == design


RARE = {"bias_fraction_bits": 3, "half_even": 1, "round_twice": 1, "skip_words": 2, "add_factor_bits": 9}
RARE |= {"add_bias_bits": 9, "aheads": 2, "lut_products": ("addition",), "lookup_rows": 512}
RARE |= {"map_products": 1, "outputs": 3}


@pytest.mark.parametrize(("name", "value"), RARE.items())
def test_a_rare_field_is_written_where_it_is_set(name, value):
    assert name not in Npu.of(**INTEGER).to_dict()
    others = {"skip_words": 2} if name in ("add_factor_bits", "add_bias_bits", "map_products") else {}
    npu = Npu.of(**INTEGER, **others, **{name: value})
    assert npu.to_dict()[name] == (list(value) if isinstance(value, tuple) else value)
    assert Npu.from_dict(npu.to_dict()) == npu


ADDITIONS = [
    ({"tuple_parts": 1}, "tuple_parts must be 0 without a table aheads, got 1"),
    ({**INTEGER, "joined_words": 2}, "joined_words needs a skip store, got 2"),
    ({**KEEPS, "joined_words": 2}, "joined_words must be 0 for engine binary, got 2"),
    ({"skip_words": 9}, "skip_bits must be 2..9, got 0"),
    ({"skip_words": 9, "skip_bits": 1}, "skip_bits must be 2..9, got 1"),
    ({"skip_bits": 2}, "skip_bits needs a skip store, got 2"),
    ({**INTEGER, **KEEPS}, "skip_bits must be 0 for engine integer, got 2"),
    ({"skips_onward": 1}, "skips_onward needs a skip store, got 1"),
    ({"skips_onward": 1, **KEEPS}, "skips_onward needs outlet ring, got ('loop', 'host')"),
    ({"skips_onward": 1, "outlets": ("ring", "loop")}, "skips_onward needs a skip store, got 1"),
    (
        {**INTEGER, "feature_bits": 19, "acc_bits": 32, "skip_words": 9},
        "feature_bits must be <= 18 for skip_words = 9, got 19",
    ),
    (
        {**INTEGER, "ol": 3, "skip_words": 9},
        "ol must divide kfp = 8, or be a multiple of it, for skip_words = 9, got 3",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), ADDITIONS)
def test_where_no_addition_can_be(parameters, message):
    with value_error(f"npu: {message}"):
        Npu.of(**parameters)


def test_a_skip_store_is_of_the_engine():
    """It follows the engine where that changes; made by itself it is refused beside another one."""
    steps, maps = Npu.of(**KEEPS), Npu.of(**INTEGER, skip_words=9, joined_words=2, map_products=1)
    assert steps.changed(**INTEGER, joined_words=2, map_products=1) == maps
    assert maps.changed(engine="binary", feature_bits=1, weight_bits=1, skip_bits=2).stores == steps.stores
    with value_error("npu: MapSkipStore needs engine integer, got binary"):
        replace(steps, stores=maps.stores)


@pytest.mark.parametrize(("name", "value"), [("half_even", 1), ("bias_fraction_bits", 2)])
def test_features_that_mean_nothing_are_refused(name, value):
    with value_error(f"npu: {name} {REQUANTISES}, got {value}"):
        Npu.of(**{name: value})


def test_features_go_where_they_mean_nothing_any_more():
    npu = Npu.of(**KEEPS, multiplier_bits=15, half_even=1)
    assert npu.changed(skip_words=0) == Npu.of()
    assert npu.unchecked(skip_words=0) == Npu.of()


def test_what_makes_results_follows_the_engine_and_the_skip_store():
    """Made by itself it is refused where it doesn't."""
    plain, steps = Npu.of(), Npu.of(**KEEPS)
    kinds = {"ThresholdResults": plain, "SignResults": steps, "IntegerResults": Npu.of(**INTEGER)}
    for name, npu in kinds.items():
        assert type(npu.results).__name__ == name
        for other in kinds.values():
            if other is not npu:
                with value_error(f"npu: results must be {name}, got {type(other.results).__name__}"):
                    replace(npu, results=other.results)
    assert plain.changed(**KEEPS) == steps
    assert steps.changed(skip_words=0, **INTEGER) == kinds["IntegerResults"]


@pytest.fixture
def means(monkeypatch):
    """Where values mean something, for a test to change: what was worked out of it before is forgotten, and again
    after the test."""
    flat._meant_without.cache_clear()
    monkeypatch.setattr(flat, "_MEANS", {**flat._MEANS})
    yield flat._MEANS
    flat._meant_without.cache_clear()


def test_a_number_that_means_nothing_is_refused_whatever_its_default(means, monkeypatch):
    """As a number would be that an array of the integer engine alone has, and that is 1 by default."""
    means["accumulators"] = attrgetter("requantises")
    monkeypatch.setitem(flat.WHERE, "accumulators", "requantises")
    with value_error("npu: accumulators needs an NPU that requantises, got 2"):
        Npu.of(accumulators=2)
    assert Npu.of(accumulators=1).array.accumulators == 1


def test_a_value_means_nothing_without_its_part(means):
    means["pool_line_taps"] = attrgetter("requantises")
    npu = Npu.of(**INTEGER)
    assert "pool_line_taps" in flat.meant(npu)
    assert "pool_line_taps" not in flat.meant(npu.changed(pool=False))


def test_tables_of_lookups_are_whole():
    with value_error("npu: lookup_rows must be a multiple of 256, got 300"):
        Npu.of(**INTEGER, lookup_rows=300)
    with value_error("npu: lookup_rows must be 0 or >= 256, got 255"):
        Npu.of(**INTEGER, lookup_rows=255)


@pytest.mark.parametrize("chosen", [("addition", "addition"), ("requantise",), 1])
def test_units_that_multiply_in_luts(chosen):
    with value_error(f"npu: lut_products must be some of addition, pool, in this order, got {chosen}"):
        Npu.of(**INTEGER, lut_products=chosen)


SHARED = [({**INTEGER, "lanes_per_weight": 2}, "engine integer")]
SHARED.append(({"kfp": 20, "planes": 8, "lanes_per_weight": 2}, "planes = 8"))


@pytest.mark.parametrize(("npu", "what"), SHARED)
def test_lanes_share_weights_where_they_are_bits_of_a_value(npu, what):
    with value_error(f"npu: lanes_per_weight must be 1 for {what}, got 2"):
        Npu.of(**npu)


def test_shared_weights_are_written_where_there_are_some():
    assert not {"lanes_per_weight", "lane_step"} & set(Npu.of().to_dict())
    npu = Npu.of(lanes_per_weight=2, lane_step=4)
    assert Npu.from_dict(npu.to_dict()) == npu


def test_from_dict_refuses_what_is_unknown():
    data = Design(name="d").to_dict()
    data["npus"][0]["kfb"] = 3
    with value_error("npu: fields must be those of an NPU, got 'kfb'"):
        Design.from_dict(data)


DERIVED = [
    ({"kgp": 7, "ol": 3}, 3, 4, 8),
    ({"kgp": 6, "ol": 3, "shift_bits": 0}, 2, 0, 8),
    ({"kgp": 5, "ol": 5, "shift_bits": 1}, 1, 2, 8),
    ({"kfp": 29, "planes": 8}, 8, 1, 3),
    ({"kfp": 9, "planes": 8, "shift_bits": 0}, 8, 1, 1),
]


@pytest.mark.parametrize(("parameters", "units", "code_bits", "plane_lanes"), DERIVED)
def test_what_follows(parameters, units, code_bits, plane_lanes):
    npu = Npu.of(**parameters)
    assert (npu.group_steps, npu.code_bits, npu.array.plane_lanes) == (units, code_bits, plane_lanes)


def test_memories_whose_place_nobody_chose_come_last(monkeypatch):
    npu = Npu.of(kfp=13)
    names = [m.name for m in memory_map(npu)]
    monkeypatch.setattr(memory_maps, "ORDER", tuple(name for name in memory_maps.ORDER if name != "olds"))
    assert list(memory_maps.memory_rows.__wrapped__(npu)) == [*(name for name in names if name != "olds"), "olds"]


@pytest.mark.parametrize("more", [{}, {"raster": True}, {"outlets": ("loop", "host"), "skip_words": 8}], ids=str)
def test_a_layer_may_begin_at_each_row_of_a_memory(more):
    """The field of its base is wide enough for the last row, also where a memory has one row more than a power of
    two."""
    tables = ("taps", "olds", "jumps", "aheads", "pool_taps", "pool_olds", "pool_jumps")
    rows = dict.fromkeys((*tables, "kernel_rows", "threshold_rows", "pool_kernel_rows", "pool_scale_rows"), 33)
    for npu in (Npu.of(**{**DEPTHWISE, **more}, **rows, lookup_rows=512), Npu.of(kfp=13)):
        memories = {memory.name: memory for memory in memory_map(npu)}
        based = {name: memory for name, memory in memories.items() if memory.rows.based_by}
        assert based
        for memory in based.values():
            layers, field = memory.rows.based_by
            assert memories[layers].widths[field] == (memory.depth - 1).bit_length(), memory.name


COUNTS = {
    "window_taps_minus_1": "window_taps",
    "windows_minus_1": "windows",
    "groups_minus_1": "groups",
    "levels_minus_1": "levels",
}
"""Fields of a layer's rows, and the capacity that says how large each may be."""


def test_a_layer_may_have_as_many_as_the_capacities_say():
    """Also where a capacity is one more than a power of two."""
    seen = set()
    for npu in (Npu.of(**DEPTHWISE, raster=True), Npu.of()):
        changed = npu.changed(**dict.fromkeys(COUNTS.values(), 33))
        for memory in memory_map(changed):
            for field in COUNTS.keys() & memory.widths.keys():
                seen.add(field)
                assert memory.widths[field] == 6, (memory.name, field)
    assert seen == COUNTS.keys()


def test_a_topology_keeps_window_formers_behind_an_inlet_alone():
    """With their sizes; beside another inlet there is none but for frames."""
    npu = Npu.of(**INTEGER, **SIZES, window_former=True)
    for join in (pipeline, cascade, ring):
        first, second = join([npu] * 2)
        assert first.former == npu.former
        assert second.former == (None if join is cascade else npu.former)


def test_words_of_frames_and_at_outlets():
    npu = Npu.of(kfp=4, kgp=4, ol=2, pfp=8, binariser_bits=5)
    assert npu.host_word_bits == 20
    assert npu.outlet_tuple(5) == (2, 8)
    assert npu.changed(pool=False).outlet_tuple(5) == (5, 2)
    weighted = Npu.of(**{**DEPTHWISE, "pfp": 8, "ol": 2})
    assert weighted.outlet_tuple(5) == (5, 2)
    assert weighted.pool_word_steps == 4
    assert [weighted.changed(pfp=pfp).pool_last_piece_bits for pfp in (2, 4, 8)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("parameters", "through"),
    [({"pool": False}, set()), (INTEGER, {"plain", "pooled"}), (DEPTHWISE, {"pooled"})],
    ids=["no pool unit", "pool unit", "pool unit with weights"],
)
def test_which_results_go_through_the_pool_unit(parameters, through):
    """Sums never do; past a pool unit with weights maps without a pool have a way of their own."""
    npu = Npu.of(**parameters)
    layers = {"plain": (False, False), "pooled": (False, True), "sums": (True, False)}
    assert {name for name, (raw, pool) in layers.items() if npu.pools_results(raw=raw, pool=pool)} == through
