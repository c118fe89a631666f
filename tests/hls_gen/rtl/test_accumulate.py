"""Accumulation in hardware against golden/layers/accumulate.py: the kinds popcount, or, both, or_words, and those that
choose or_words too, in the structures parallel, serial and collect; and whole networks with such layers."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from bitloom.golden.layer import Layer
from bitloom.golden.layers.accumulate import Accumulator
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Model
from bitloom.hls_gen.check import check as check_rules
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP, Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import CollectedPopcount, Or, OrWords, ProductSum, SerialPopcount
from bitloom.hls_gen.rtl.array.convolver import processing_element
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.virtual.sim import lint
from tests.cases import random_model
from tests.errors import value_error
from tests.graph_text import network_of
from tests.overlay.build.board_cases import ACCUMULATORS

from .bench import Bench, together
from .elements import Beat, check, check_gaps

PRODUCTS = 10
"""Of the longest window."""

KINDS = ("popcount", "or", "both")
WORD_KINDS = ("or_words", "popcount_words", "both_words")
"""Ways in which an NPU accumulates; with ``_words`` layers may also choose ``or_words``."""
POINTS = {"parallel": ("parallel", 10), "serial_1": ("serial", 1), "serial_3": ("serial", 3)}
POINTS |= {f"collect_{lanes}": ("collect", lanes) for lanes in (1, 3, 10)}
"""Structure and lanes; "parallel" is "serial" with as many lanes as a window has products."""

LATENCY = {"popcount": 3, "both": 3, "or_words": 3, "or": 2}
"""Cycles from features to result, up to 64 lanes, words or bits; a collecting PE's too."""


def npu_of(kind: str, structure: str, lanes: int, products: int = PRODUCTS, **more: int) -> Npu:
    """With words of so many lanes as divide ``lanes``, up to 11."""
    collect = lanes * -(-products // lanes) if structure == "collect" else 0
    word = max(w for w in (1, 2, 3, 5, 11) if lanes % w == 0) if "words" in kind else 0
    accumulate = kind.removesuffix("_words") if kind != "or_words" else kind
    size = {"kfp": lanes, "word_lanes": word, "collect": collect}
    return Npu.of(accumulate=accumulate, acc_bits=12, shift_bits=0, **size, **more)


def code_of(npu: Npu, accumulate: str) -> int:
    """The code of a beat: above its own bits, whether it is reduced by OR and whether by words."""
    choices = npu.array.reducer.choices
    top = 1 << choices.index(accumulate) if accumulate in choices else 0
    return top << npu.code_bits - len(choices)


NPUS = {f"{kind}_{name}": npu_of(kind, *point) for kind in KINDS for name, point in POINTS.items()} | {
    f"{kind}_{name}": npu_of(kind, *POINTS[name]) for kind in WORD_KINDS for name in ("parallel", "collect_3")
}
WIDE = {f"{kind}_wide_collect": npu_of(kind, "collect", 5, 130) for kind in (*KINDS, *WORD_KINDS[::2])}
WIDE |= {f"{kind}_wide_serial": npu_of(kind, "serial", 77, 130) for kind in (*KINDS, *WORD_KINDS[::2])}
SEVERAL = {f"{kind}_several": npu_of(kind, "serial", 4, accumulators=4) for kind in (*KINDS, "or_words")}
MORE = {
    "both_planes": Npu.of(kfp=7, accumulate="both", planes=2, acc_bits=12),
    "both_shift": Npu.of(kfp=6, accumulate="both", shift_bits=2, acc_bits=12),
    "words_planes": Npu.of(kfp=8, word_lanes=4, planes=2, acc_bits=12),
    "words_shift": Npu.of(kfp=6, accumulate="both", word_lanes=3, shift_bits=2, acc_bits=12),
}
ALL = NPUS | WIDE | SEVERAL | MORE


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    library = Library(32)
    blocks = {}
    for name, npu in ALL.items():
        block = processing_element(npu)[0](library, npu)
        block.m.name = f"{block.m.name}_{name}"  # else some have the same
        blocks[name] = block
    with Bench(together("pes", blocks)) as bench:
        yield bench


def windows(npu: Npu, structure: str, products: int, seed: int) -> tuple[list[Beat], list[int]]:
    """Beats of random windows, and what golden says of each."""
    draw = random.Random(seed)
    beats, results = [], []
    for number in range(200):
        accumulate = draw.choice(npu.array.reducer.accumulations)
        count = products if number % 2 or structure == "parallel" else draw.randint(1, products)
        word = npu.value("word_lanes") if accumulate == "or_words" else 0
        golden = Accumulator(kind=accumulate, structure=structure, products=products, lanes=npu.array.kfp, word=word)
        ones = [draw.getrandbits(1) for _ in range(count)]
        others = [1 - x for x in ones] if draw.random() < 0.6 else [draw.getrandbits(1) for _ in ones]
        if draw.random() < 0.3:
            others[draw.randrange(count)] ^= 1
        cycles = [c for c in golden.run(ones, others) if c.features]
        for k, cycle in enumerate(cycles):
            words = (sum(bit << k for k, bit in enumerate(each)) for each in (cycle.features, cycle.weights))
            beats.append(Beat(*words, k == 0, k == len(cycles) - 1, code_of(npu, accumulate)))
        results.append(golden.result(ones, others))
        assert len(cycles) == golden.cycles(count) - (structure == "collect")
    return beats, results


def structure_of(npu: Npu, products: int) -> str:
    return "collect" if npu.array.reducer.collects else "parallel" if npu.array.kfp >= products else "serial"


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", NPUS)
def test_windows_back_to_back(bench, name):
    npu = NPUS[name]
    assert processing_element(npu)[1] == LATENCY[npu.value("accumulate")]
    check(bench, name, npu, *windows(npu, structure_of(npu, PRODUCTS), PRODUCTS, 1))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [*NPUS, *WIDE])
def test_gaps(bench, name):
    npu = ALL[name]
    products = 130 if name in WIDE else PRODUCTS
    check_gaps(bench, name, npu, *windows(npu, structure_of(npu, products), products, 2))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", WIDE)
def test_wide(bench, name):
    """Registers and words of more than 64 bits have one stage more where they are counted."""
    npu = WIDE[name]
    late = (
        npu.value("accumulate") != "or"
        and (npu.value("collect") or npu.array.kfp) // (npu.value("word_lanes") if "or_w" in name else 1) > 64
    )
    assert processing_element(npu)[1] == LATENCY[npu.value("accumulate")] + late
    assert late or name in ("or_wide_collect", "or_wide_serial", "or_words_wide_collect", "or_words_wide_serial")
    check(bench, name, npu, *windows(npu, structure_of(npu, 130), 130, 4))


@pytest.mark.parametrize("name", [*SEVERAL, *MORE])
def test_several_accumulators_and_other_codes(bench, name):
    npu = ALL[name]
    check(bench, name, npu, *windows(npu, "serial", PRODUCTS, 5))


# Values that an NPU may have.


INTEGER = {"engine": "integer", "feature_bits": 2, "weight_bits": 2, "shift_bits": 0}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"accumulate": "or", "shift_bits": 3}, "npu: shift_bits must be 0 for accumulate or, got 3"),
        ({"accumulate": "or", "planes": 4}, "npu: planes must be 0 for accumulate or, got 4"),
        (
            {"accumulate": "or_words", "word_lanes": 4, "planes": 4},
            "npu: planes must be 0 for accumulate or_words, got 4",
        ),
        ({"accumulate": "or_words"}, "npu: word_lanes must be an integer >= 1, got 0"),
        ({"accumulate": "or_words", "word_lanes": 3}, "npu: word_lanes must divide kfp = 8, got 3"),
        ({"word_lanes": 3}, "npu: word_lanes must be 0 or divide kfp = 8, got 3"),
        ({"word_lanes": -1}, "npu: word_lanes must be an integer >= 0, got -1"),
        ({"accumulate": "or", "word_lanes": 4}, "npu: word_lanes must be 0 for accumulate or, got 4"),
        ({**INTEGER, "word_lanes": 4}, "npu: word_lanes must be 0 for engine integer, got 4"),
        ({"accumulate": "both", **INTEGER}, "npu: accumulate must be popcount for engine integer, got both"),
        ({"collect": 20}, "npu: collect must be 0 or a multiple of kfp = 8, got 20"),
        ({"accumulate": "or", "collect": 20}, "npu: collect must be 0 or a multiple of kfp = 8, got 20"),
        ({"collect": 16, "shift_bits": 3}, "npu: shift_bits must be 0 for collect = 16, got 3"),
        ({"collect": 16, "accumulate": "both", "planes": 4}, "npu: planes must be 0 for collect = 16, got 4"),
        ({"collect": 16, "accumulators": 2}, "npu: accumulators must be 1 for collect = 16, got 2"),
        ({"collect": 128, "acc_bits": 8}, "npu: acc_bits must be >= 9 for collect = 128, got 8"),
    ],
)
def test_bad_parameters(parameters, message):
    with value_error(message):
        Npu.of(**parameters)


REDUCERS = [
    ({}, SerialPopcount(shift_bits=3)),
    ({"planes": 4, "accumulate": "both"}, SerialPopcount(accumulate="both", planes=4, shift_bits=3)),
    ({"collect": 16, "word_lanes": 2}, CollectedPopcount(collect=16, word_lanes=2)),
    ({"accumulate": "or"}, Or()),
    ({"accumulate": "or", "collect": 8}, Or(collect=8)),
    ({"accumulate": "or_words", "word_lanes": 4}, OrWords(word_lanes=4)),
]


@pytest.mark.parametrize(("parameters", "reducer"), REDUCERS, ids=str)
def test_values_choose_a_kind_of_reducer(parameters, reducer):
    """Files have the values that it lacks as 0, and give the same NPU."""
    npu = Npu.of(**parameters)
    data = npu.to_dict()
    assert npu.array.reducer == reducer
    assert (data["planes"], data["shift_bits"]) == (
        (reducer.planes, reducer.shift_bits) if isinstance(reducer, SerialPopcount) else (0, 0)
    )
    assert Npu.from_dict(data) == npu


def test_a_change_of_the_kind_leaves_values_out_that_the_new_one_lacks():
    npu = Npu.of(kfp=9, planes=8, shift_bits=2)
    assert npu.changed(accumulate="or").array.reducer == Or()
    assert npu.changed(collect=9).array.reducer == CollectedPopcount(collect=9)
    assert npu.changed(engine="integer", feature_bits=8, weight_bits=8, acc_bits=32).array.reducer == ProductSum()
    with value_error("npu: planes must be 0 for accumulate or, got 8"):
        npu.changed(accumulate="or", planes=8)


CODE_BITS = [({}, 5), ({"shift_bits": 0}, 1), ({"planes": 3}, 2), ({"collect": 16, "shift_bits": 0}, 1)]


@pytest.mark.parametrize(("parameters", "code_bits"), CODE_BITS)
def test_one_more_code_bit_chooses(parameters, code_bits):
    assert Npu.of(accumulate="both", **parameters).code_bits == code_bits
    assert Npu.of(word_lanes=4, **parameters).code_bits == code_bits
    assert Npu.of(accumulate="both", word_lanes=4, **parameters).code_bits == code_bits + 1
    assert Npu.of(accumulate="or_words", word_lanes=4, shift_bits=0).code_bits == 0


# Whole designs. Random networks on them are in tests/overlay/build/board_cases.py.


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ACCUMULATORS)
def test_verilog_is_clean(name):
    """Some of them as they are written for synthesis."""
    target = "synthesis" if name in ("collect_words", "or", "words_planes") else "simulation"
    text = generate(ACCUMULATORS[name], target=target, checked=False).text
    check_rules(text, TOP)
    assert lint(text) == []


# Layers that don't fit.


def one_layer(layer: Layer) -> Model:
    return random_model(network_of("2x3x4", layer), np.random.default_rng(0))


def dense_model(accumulate: str, **more: int) -> Model:
    return one_layer(Dense(name="dense", out_channels=2, accumulate=accumulate, **more))


@pytest.mark.parametrize(
    ("layer", "npu", "accumulates"),
    [
        ("or", Npu.of(), "or or both, got popcount"),
        ("popcount", Npu.of(accumulate="or", shift_bits=0), "popcount or both, got or"),
    ],
)
def test_an_npu_that_cannot(layer, npu, accumulates):
    with value_error(f"dense: accumulate {layer} needs an NPU that accumulates {accumulates}"):
        size_memories("design", [dense_model(layer)], npu)


SHORT = (
    "or_words with words of {} channels needs an NPU with word_lanes >= {}, since a PE takes the OR of a word in one "
)
SHORT += "beat, got word_lanes = {} and kfp = {}"
SHARED = (
    "each word of 3 channels must fill a group of word_lanes = 4 lanes alone, got [[0, 0, 0, 1]] as the words of the "
)
SHARED += "groups' lanes"


@pytest.mark.parametrize(
    ("word", "npu", "message"),
    [
        (2, Npu.of(), "accumulate or_words needs an NPU with word_lanes, got 0"),
        (3, Npu.of(kfp=4, word_lanes=4), SHARED),
        (4, Npu.of(kfp=4, word_lanes=2), f"accumulate {SHORT.format(4, 4, 2, 4)}"),
        (2, Npu.of(kfp=1, word_lanes=1), f"accumulate {SHORT.format(2, 2, 1, 1)}"),
    ],
)
def test_words_that_do_not_fit_the_lanes(word, npu, message):
    with value_error(f"dense: {message}"):
        size_memories("design", [dense_model("or_words", word_channels=word)], npu)


def test_a_word_in_two_groups_of_lanes_does_not_fit_them():
    """A kernel group of five leaves its last channel alone in a step of two, and so does the next group its first."""
    network = network_of("1x1x4", "conv 6 1x1, act, dense 2 accumulate=or_words word_channels=2")
    model = random_model(network, np.random.default_rng(0))
    with value_error(
        "dense: each word of 2 channels must fill a group of word_lanes = 2 lanes alone, got [[0, 0], [1, 1], [2, -1], "
        "[2, -1]] as the words of the groups' lanes"
    ):
        size_memories("design", [model], Npu.of(kfp=4, kgp=5, ol=2, word_lanes=2))


def test_a_layer_of_products_needs_an_npu_that_counts_them():
    npu = Npu.of(accumulate="or_words", word_lanes=4, shift_bits=0)
    with value_error("dense: accumulate popcount needs an NPU that accumulates popcount or both, got or_words"):
        size_memories("design", [dense_model("popcount")], npu)


def test_a_window_that_does_not_fit_the_register():
    """6 taps of 4 channels, 3 lanes a beat: 6 * 2 * 3 bits."""
    model = one_layer(Conv(name="conv", out_channels=2, kernel=(2, 3)))
    small = Design(name="small", npus=(Npu.of(kfp=3, shift_bits=0, collect=33),))
    manifest = Manifest.from_dict(generate(small, checked=False).manifest, "small")
    with value_error("net: collect must be >= 36, design small has 33"):
        compile_model(model, manifest)
    assert size_memories("fitted", [model], small.npus[0]).npus[0].value("collect") == 36
    assert size_memories("fitted", [model], Npu.of(kfp=3)).npus[0].value("collect") == 0
