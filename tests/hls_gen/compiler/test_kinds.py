"""Plans for NPUs of different engines: which computes what, and what they refuse. That it is right: hardware, in
tests/overlay/build/test_random_networks.py."""

from collections.abc import Sequence

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import random_model
from tests.rows import npu_rows

BINARY = Npu.of(kfp=8, kgp=4, ol=2, shift_bits=3)
INTEGER = Npu.of(engine="integer", feature_bits=8, weight_bits=8, acc_bits=32, shift_bits=0, kfp=3, kgp=2)
ENDS = cascade([INTEGER, BINARY, INTEGER])
FIRST = "conv_1 6 2x2 s8, act_1"
ONE, TWO, THREE = (f"conv_{number} 6 2x2, act_{number}" for number in (1, 2, 3))
MIDDLE = f"{TWO}, {THREE}"
LAST = "dense 5 s8"


def model_of(*layers: str) -> Model:
    return random_model(network_of("8x7x2 s8", *layers), 3, 32)


def planned(model: Model, npus: Sequence[Npu], mapping: Sequence[int] | None = None) -> Plan:
    return plan(model, npus, CompileChoices(mapping=mapping, map_order="pull"))


@pytest.mark.parametrize(
    ("npus", "layers", "mapping"),
    [
        (ENDS, [FIRST, MIDDLE, LAST], [0, 1, 1, 2]),
        (ENDS, ["conv_1 6 2x2 s4, act_1", TWO], [0, 1]),
        (ENDS, ["conv_1 6 2x2 s8"], [0]),
        (ENDS, [ONE, MIDDLE, LAST], [0, 1, 1, 2]),  # whatever NPU 0 is computes the first layer
        (cascade([BINARY, INTEGER]), [ONE, MIDDLE, LAST], [0, 0, 0, 1]),
        (pipeline([INTEGER, BINARY, BINARY, INTEGER]), [FIRST, MIDDLE, LAST], [0, 1, 2, 3]),
        (ring([INTEGER, BINARY]), [FIRST, TWO, LAST], [0, 1, 0]),
    ],
)
def test_layers_go_to_npus_of_their_kind(npus, layers, mapping):
    network_plan = planned(model_of(*layers), npus)
    assert network_plan.mapping == mapping
    kinds = ["binary" if p.binary else "integer" for p in network_plan.lowered.layers]
    assert kinds == [npus[n].engine for n in mapping]
    assert [[layer.layer.name for layer in network_plan.on(k)] for k in range(len(npus))] == [
        [p.name for p, n in zip(network_plan.lowered.layers, mapping) if n == k] for k in range(len(npus))
    ]


def test_a_mapping_decides_the_kind():
    """Weights of +-1 can be multiplied, too."""
    model = model_of(ONE, TWO, THREE)
    layers = planned(model, cascade([BINARY, INTEGER, BINARY]), [0, 1, 2]).lowered.layers
    assert [not p.binary for p in layers] == [False, True, False]


def test_signs_have_a_row_of_scales_each():
    """3 thresholds of 6 kernels on 4 PEs: a step for each, with bias and a factor of 1; nothing where no kernel is."""
    npu = INTEGER.changed(kgp=4, ol=4)
    model = model_of(f"{FIRST} levels=3", TWO)
    network_plan = planned(model, cascade([npu, BINARY]))
    (rows,) = npu_rows(network_plan)
    scales = rows.memories["scales"]
    p = network_plan.layers[0].layer
    for lane in range(4):
        kernels = range(lane, 6, 4)
        none = [0] * (6 - 3 * len(kernels))
        assert scales[f"bias_{lane}"].tolist() == [*p.scale.bias[kernels].ravel(), *none]
        assert scales[f"multiplier_{lane}"].tolist() == [1] * 6
        assert scales[f"shift_{lane}"].tolist() == [0] * 3 * len(kernels) + [npu.most_shift for _ in none]
    row = rows.row("results")
    assert (row["levels_minus_1"], row["low"], row["high"]) == (2, -1, 0)


def test_bits_of_a_thermometer_are_lanes_of_an_integer_npu():
    """12 lanes come in 2 words of 8, each cut to 3 words of 3; the map is 6 x 5."""
    network_plan = planned(model_of(FIRST, f"{TWO} levels=2", LAST), ENDS)
    (rows,) = npu_rows(network_plan, 2)
    assert rows.row("inputs")["words"] == 30 * 6
    assert rows.memories["kernels"]["weights"].shape == (3 * 30 * 6, 2 * 3)
    assert network_plan.on(2)[0].layer.weight.shape == (5, 30, 12)


def test_bits_have_a_gearbox_of_their_own():
    """Also where as many lanes leave by other outlets; a binary NPU gives bits to all."""
    npus = cascade([INTEGER.changed(kfp=8), BINARY, INTEGER.changed(kfp=8)])
    network_plan = planned(model_of("conv_0 4 1x1 s8, act_0 s8", FIRST, MIDDLE, LAST), npus, [0, 0, 1, 1, 2])
    modelled = system(network_plan, npus)
    assert [modelled.gearbox(i) for i in range(4)] == [(8, False), (8, True), (8, False), (8, False)]


def test_widths_are_those_of_the_npu():
    """NPUs of one engine may differ in their weights; the frame's features are those of NPU 0."""
    narrow = INTEGER.changed(feature_bits=2, weight_bits=3)
    layers = [FIRST, TWO, "dense 5 s3"]
    network_plan = planned(model_of(*layers), cascade([INTEGER, BINARY, narrow]))
    assert memory_of(network_plan.foldings[2], "kernels").width == 2 * 3 * 3
    with value_error("dense: its weight must fit 3 bits in two's complement, got signed 4 bit (-8..7)"):
        planned(model_of(*layers[:-1], "dense 5 s4"), cascade([INTEGER, BINARY, narrow]))
    with value_error("conv_1: its map must fit 2 bits in two's complement, got signed 8 bit (-128..127)"):
        planned(model_of(*layers), cascade([narrow, BINARY, INTEGER]))


def test_what_no_npu_can_do():
    with value_error("conv_2: engine of its NPU must be binary, got integer in NPU 0"):
        planned(model_of(FIRST, THREE, TWO, LAST), ring([INTEGER, BINARY]))
    with value_error(
        "dense: a chain of 2 NPUs must have room for all 3 layers, each NPU for those of its engine, without loop for "
        "one, and end at one with outlet host"
    ):
        planned(model_of(FIRST, TWO, LAST), cascade([INTEGER, BINARY]))
    with value_error("dense: weight must be bipolar 1 bit or ternary, got signed 8 bit (-128..127)"):
        planned(model_of(FIRST, TWO, LAST), ENDS, [0, 1, 1])
    with value_error(
        "conv_1: what follows, where no binary engine reads it, must be nothing, or requantise, perhaps lookup, and "
        "perhaps a pool, got threshold"
    ):
        planned(model_of(FIRST, TWO, LAST), ENDS, [0, 0, 1])
    with value_error(
        "conv_1: what follows, where the binary engine reads it, must be threshold, threshold and max_pool, or "
        "max_pool and threshold, got requantise"
    ):
        planned(model_of("conv_1 6 2x2 s8, act_1 s8", TWO, LAST), ENDS, [0, 1, 2])
    with value_error("mapping: an NPU 0..2 must be given for each of 3 layers, got [0, 1]"):
        planned(model_of(FIRST, TWO, LAST), ENDS, [0, 1])


def test_frames_of_a_binary_first_npu():
    """Bit planes, as without an integer NPU behind it."""
    mixed = planned(model_of(ONE, LAST), cascade([BINARY, INTEGER]))
    alone = planned(model_of(ONE, "dense 5"), [BINARY])
    sent = [plan.frame.frame_layout.bits(plan.lowered.source, 32) for plan in (mixed, alone)]
    np.testing.assert_array_equal(*sent)
    assert mixed.lowered.input_bits == alone.lowered.input_bits == 8
