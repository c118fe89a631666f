"""Integers that a binary NPU keeps for the next one (docs/decisions/0022): whose skip store they wait in, designs for
several networks, every refusal."""

from dataclasses import replace

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.zoo import load
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Deadlock, enough_skips, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, looped, pipeline, ring
from bitloom.overlay.fuzz.designs import chain
from tests.errors import value_error
from tests.hls_gen.compiler.test_binary_residual import BLOCK, FIRST, NPU, residual
from tests.networks import random_model
from tests.rows import npu_rows

LAST = "sign_3 add_3, conv_4 sign_3"
LATE = f"{FIRST}, conv_2 sign_1, sign_2 conv_2, conv_3 sign_2, act_3 conv_3, add_3 act_3 act_1, {LAST}"
"""conv_3 adds what conv_1 makes."""
LONG = f"{BLOCK}, conv_3 sign_2, act_3 conv_3, add_3 act_3 add_2, {LAST}"
"""Each layer adds what the one before makes."""


def model_of(layers):
    return random_model(residual(layers), 1, 24)


def test_integers_wait_where_they_are_added():
    network_plan = plan(model_of(LONG), ring([NPU] * 2), CompileChoices(map_order="raster"))
    assert [(one.target, one.reader, one.adder, one.skip_npu) for one in network_plan.ways.values()] == [
        ("ring", "conv_2", "conv_2", 1),
        ("ring", "conv_3", "conv_3", 0),
        ("ring", "conv_4", None, None),
        ("host", None, None, None),
    ]
    assert [npu.skips_onward for npu in network_plan.foldings] == [1, 1]
    assert [[layer.row("results")["keeps"] for layer in npu_rows(network_plan, n)] for n in range(2)] == [[1, 0]] * 2


def test_a_shortcut_over_two_layers_stays_in_a_ring_of_two():
    network_plan = plan(model_of(LATE), ring([NPU] * 2), CompileChoices(map_order="raster"))
    assert [one.skip_npu for one in network_plan.ways.values()] == [None] * 4
    assert [npu.skips_onward for npu in network_plan.foldings] == [0, 0]
    assert [npu.value("skip_words") > 0 for npu in network_plan.foldings] == [True, False]


@pytest.mark.parametrize(("join", "words"), [(ring, [True, True]), (pipeline, [True] * 3 + [False])])
def test_stores_are_sized(join, words):
    """Nobody waits for room in them, and with the least ones beside those of NPUs before all finishes; an NPU that only
    sends has the least."""
    model = model_of(LONG)
    count = len(words)
    design = size_memories("d", [model], join([NPU] * count))
    assert [npu.value("skip_words") > 0 for npu in design.npus] == words
    assert count == 2 or design.npus[0].value("skip_words") == 2
    manifest = Manifest.of(design, "0" * 64)
    compile_model(model, manifest)
    modelled = system(plan(model, design.npus), design.npus, spill_words=design.spill_words)
    least = enough_skips(modelled, {0: design.npus[0].value("skip_words"), 1: 2}, 2)[1]
    assert 2 <= enough_skips(modelled, {1: 2}, 2)[1] <= least <= design.npus[1].value("skip_words")
    npus = [replace(flow_npu, skip_words=None) for flow_npu in modelled.npus]
    assert simulate(replace(modelled, npus=tuple(npus)), 4).left == simulate(modelled, 4).left
    if least > 2:
        second = design.npus[1].changed(skip_words=least - 1)
        few = replace(manifest.design, npus=(design.npus[0], second, *design.npus[2:]))
        with pytest.raises(Deadlock):
            simulate(system(plan(model, few.npus), few.npus, spill_words=design.spill_words), 2)
        with value_error(f"net: skip_words must be >= {least}, NPU 1 of design d has {least - 1}"):
            compile_model(model, Manifest.of(few, "0" * 64))


def test_steps_are_as_wide_on_both_sides():
    """conv_3, on NPU 1, makes integers of 9 bits."""
    layers = list(residual(LONG).layers)
    layers[8] = replace(layers[8], encoding=signed(9))
    design = size_memories("d", [model_of(layers)], pipeline([NPU] * 4))
    assert [npu.value("skip_bits") for npu in design.npus] == [9, 9, 9, 0]


def test_a_network_of_thresholds_runs_there_too():
    plain = load("digits-cnn")
    npus = ring([Npu.of(kfp=32, kgp=16, pfp=8, ol=4, planes=6, shift_bits=0)] * 2)
    design = size_memories("d", [plain, load("digits-residual")], npus)
    assert [npu.skips_onward for npu in design.npus] == [1, 1]
    compile_model(plain, Manifest.of(design, "0" * 64))


# Refusals.


def test_one_network_for_the_own_store_and_one_for_the_next():
    with value_error("net: NPU 0 must have skips_onward = 0 for the integers that it keeps, got 1"):
        size_memories("d", [model_of(LONG), model_of(LATE)], ring([NPU] * 2))


def test_integers_for_two_stores():
    with value_error(
        "net: the integers that NPU 0 keeps must wait in one skip store, got those of conv_1 in NPU 0 and those of "
        "conv_2 in NPU 1"
    ):
        plan(model_of(LONG), cascade([NPU] * 2), CompileChoices(mapping=[0, 0, 1, 1]))


def test_integers_of_two_npus_in_one_store():
    with value_error(
        "net: the integers in the skip store of NPU 1 must come from one NPU, got those of conv_1 from NPU 0 and those "
        "of conv_2 from NPU 1"
    ):
        plan(model_of(LONG), cascade([NPU] * 2), CompileChoices(mapping=[0, 1, 1, 1]))


def test_no_way_to_the_addition():
    with value_error("conv_1: NPU 0 must have an outlet to NPU 2, got ring, host"):
        plan(model_of(LATE), ring([NPU] * 3))


def test_other_steps():
    with value_error(
        "conv_1: NPU 1 must have steps as NPU 0 has them, where conv_2 adds the integers, engine binary, kgp = 4, "
        "ol = 2, got engine binary, kgp = 4, ol = 1"
    ):
        plan(model_of(LONG), looped(ring([NPU, NPU.changed(ol=1)])))


def test_designs_whose_npus_do_not_go_together():
    own = NPU.changed(skip_words=9, skip_bits=3, skips_onward=1, outlets=("ring", "loop", "host"))
    with value_error(
        "d: NPU 1 must have a skip store for steps of the NPU before, ol = 2 and skip_bits = 3, got 2 and 0"
    ):
        Design(name="d", npus=chain([own, NPU]))
    with value_error(
        "d: NPU 1 must have a skip store for steps of the NPU before, ol = 2 and skip_bits = 3, got 1 and 3"
    ):
        Design(name="d", npus=chain([own, own.changed(ol=1, skips_onward=0)]))


def test_an_unused_npu_of_a_cascade():
    """A design's NPU 1 that has a skip store and no layer."""
    model = model_of(BLOCK)
    choices = CompileChoices(mapping=[0, 0])
    design = size_memories("d", [model], cascade([NPU] * 2), choices)
    keeps = design.npus[1].changed(skip_words=2, skip_bits=design.npus[0].value("skip_bits"))
    compile_model(model, Manifest.of(replace(design, npus=(design.npus[0], keeps)), "0" * 64), choices)
