"""Parts of tuples: the pattern with the fewest words that covers what kernel groups need, against a search through all
patterns; the beats and kernel rows of grouped convolutions."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed
from bitloom.golden.layer import Map
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.tuple_parts import TuplePart, WeightedLanes, tuple_part
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu
from tests.graph_text import network_of
from tests.networks import random_model
from tests.rows import npu_rows


def integer(lanes: np.ndarray) -> WeightedLanes | None:
    """The pattern of kernels with weights for ``lanes`` (kernels, channels), on the integer engine."""
    return None if lanes.all() else WeightedLanes(lanes, same=False, even=False)


def binary(lanes: np.ndarray, *, double: bool) -> WeightedLanes:
    """The same on the binary engine, whose sums count twice or not."""
    return WeightedLanes(lanes, same=True, even=not double)


def test_the_same_pattern_is_looked_at_once():
    lanes = np.kron(np.eye(2, dtype=bool), np.ones((4, 4), bool))
    layout = np.arange(8).reshape(2, 4)
    first = WeightedLanes.of(lanes, same=False, even=False)
    assert WeightedLanes.of(lanes.copy(), same=False, even=False) is first
    others = [(lanes[:, ::-1], False, False), (lanes.reshape(16, 4), False, False), (lanes, True, False)]
    assert all(WeightedLanes.of(other, same=same, even=even) is not first for other, same, even in others)
    assert first.part(layout, 4) is first.part(layout.copy(), 4)
    assert first.part(layout, 4) == (TuplePart(1, 1, 1), 4)
    assert first.part(layout, 8) == (TuplePart(2), 0)
    assert first.part(layout[:, ::-1], 2) == (TuplePart(1, 1, 2), 4)


def fewest(needed: np.ndarray) -> int:
    """Words of the shortest part, by trying every pattern word by word."""
    count, words = needed.shape
    for most in range(1, words):
        for groups in range(1, count + 1):
            for step in range(words):
                parts = [range(k // groups * step, k // groups * step + most) for k in range(count)]
                covered = all(set(np.flatnonzero(row)) <= set(part) for part, row in zip(parts, needed))
                if covered and parts[-1].stop <= words:
                    return most
    return words


def test_a_match_in_every_lane_that_is_left_out_must_be_the_same_for_all_kernels():
    """The binary engine takes it off by one offset a layer: a last word with fewer channels keeps its zeros."""
    lanes = np.kron(np.eye(2, dtype=bool), np.ones((4, 4), bool))
    layout = np.arange(8).reshape(2, 4)
    assert tuple_part(binary(lanes, double=True), layout, 4) == (TuplePart(1, 1, 1), 4)
    assert tuple_part(binary(lanes, double=False), layout, 4) == (TuplePart(1, 1, 1), 4)
    cut = np.where(layout == 7, UNUSED, layout)
    assert tuple_part(binary(lanes[:, :7], double=True), cut, 4) == (TuplePart(2), 0)
    assert tuple_part(integer(lanes[:, :7]), cut, 4)[0] == TuplePart(1, 1, 1)
    odd = np.where(layout % 4 == 3, UNUSED, layout)  # 3 lanes each, of which halves can't be taken off
    assert tuple_part(binary(lanes, double=True), odd, 4) == (TuplePart(1, 1, 1), 3)
    assert tuple_part(binary(lanes, double=False), odd, 4) == (TuplePart(2), 0)
    assert tuple_part(None, layout, 4) == (TuplePart(2), 0)  # no weight is 0


@pytest.mark.parametrize("encoding", [signed(4), BIPOLAR, bipolar(3)], ids=str)
@pytest.mark.parametrize("weight", [signed(3), TERNARY], ids=str)
def test_the_pattern_is_that_of_the_weights(encoding, weight):
    """Of an integer layer those that are not 0; of ternary ones on the binary engine those whose two visits agree."""
    engine = Engine() if weight == TERNARY and encoding != signed(4) else Engine("integer", 4, 4)
    bits = encoding.kind == "bipolar" and engine.name == "integer"  # an integer layer reads bits from a binary one
    first = f"conv first 6 1x1, act bits levels={encoding.bits}" * bits
    source = Map(height=3, width=3, channels=6, encoding=BIPOLAR if bits else encoding)
    layers = f"conv 5 2x2 {'ternary' if weight == TERNARY else 's3'}, act {'s4' * (engine.name == 'integer')}"
    model = random_model(network_of(source, first, layers), 1, 24)
    model.arrays["conv"]["weight"][:, :, :, ::2] = 0
    lowered = lower_alone(model, engines=[*[Engine()] * bits, engine])
    p = lowered.layers[-1]
    weights = lowered.layers[-1].weight
    if engine.name == "binary":
        visits = weights.reshape(5, -1, 2, weights.shape[2])
        lanes = (visits[:, :, 0] == visits[:, :, 1]).any(axis=1)
        assert (p.weighted_lanes.same, p.weighted_lanes.even) == (True, not p.arithmetic.double)
    else:
        lanes = weights.any(axis=1)
        assert (p.weighted_lanes.same, p.weighted_lanes.even) == (False, False)
    np.testing.assert_array_equal(p.weighted_lanes.lanes, lanes)
    assert not lanes[:, : encoding.bits if encoding.kind == "bipolar" else 1].any()


INTEGER = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, kfp=4, kgp=4, ol=2, pool=False)
BINARY = INTEGER.changed(engine="binary", feature_bits=1, weight_bits=1)


@pytest.mark.parametrize(
    ("folding", "accumulators", "beats", "rows"),
    [
        (INTEGER, 1, (4 * 4 * 2 * 4, 4 * 4 * 9 * 4), (2 * 4, 9 * 4)),
        (BINARY, 1, (4 * 4 * 2 * 4, 4 * 4 * 2 * 9 * 4), (2 * 4, 2 * 9 * 4)),
        (INTEGER, 16, (4 * 4 * 2 * 4, 4 * 4 * 9 * 4 * 4), (2 * 4, 9 * 4 * 4)),  # a word is for all groups
    ],
)
def test_beats_and_kernel_rows(folding, accumulators, beats, rows):
    """16 channels in 4 words; each of 4 groups of kernels needs one of them, which the NPU that sizing makes reads."""
    bits = "s4" if folding.engine == "integer" else ""
    first = f"conv_0 16 1x1 {bits}, act_0 {bits}"
    network = network_of(f"6x6x8 {bits}", first, f"grouped_conv conv_1 16 3x3 {bits} groups=4, act_1 {bits}", name="n")
    model = random_model(network, 1, 16)
    choices = CompileChoices(map_order="raster", dataflow="auto")
    (npu,) = size_memories("n", [model], folding.changed(accumulators=accumulators), choices).npus
    network_plan = plan(model, [npu], choices)
    assert [count * 16 // 36 if n == 0 else count for n, (_, count) in enumerate(network_plan.ideal)] == list(beats)
    assert [layer.count("kernels") for layer in npu_rows(network_plan)] == list(rows)
    assert npu.sequencer.tuple_parts == (accumulators == 1)
    assert npu.sequencer.aheads == 2 * npu.sequencer.tuple_parts
