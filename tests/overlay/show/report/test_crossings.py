"""Edges of the picture of the NPUs, for graphs of layers: those that maps take, whatever the order of the layers."""

from dataclasses import replace

import pytest

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.overlay.show.report import blocks
from bitloom.overlay.show.report.gather import crossings
from bitloom.overlay.show.report.report import Report
from tests.hls_gen.compiler.test_copies import IDENTITY
from tests.hls_gen.compiler.test_residual import NPU
from tests.networks import random_model

TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize(
    ("npus", "mapping", "expected"),
    [
        (cascade([NPU] * 2), [0, 0, 0, 1, 1], {(0, 0), (0, 1), (1, 1)}),
        (cascade([NPU] * 2), [0, 0, 1, 1, 1], {(0, 0), (0, 1), (1, 1)}),
        (ring([NPU] * 2), None, {(0, 0), (0, 1), (1, 0)}),  # conv_1 is added on the NPU that made it
    ],
    ids=["cut behind a block", "cut in a block", "ring"],
)
def test_a_map_goes_from_who_makes_it_to_who_needs_it(npus, mapping, expected):
    network_plan = plan(random_model(IDENTITY, 1, 32), npus, CompileChoices(map_order="raster", mapping=mapping))
    assert crossings(network_plan) == expected


def test_a_skip_store_without_a_map_store_is_drawn(one: Report):
    model = random_model(IDENTITY, 1, 32)
    choices = CompileChoices(map_order="raster")
    design = size_memories("ring", [model], ring([NPU] * 2), choices)
    npus = tuple(replace(one.npus[0], npu=n, layers=(f"layer {n}",)) for n in range(2))
    text = blocks.picture(replace(one, design=design, npus=npus, crossings=frozenset({(0, 0), (0, 1), (1, 0)})))
    first = design.npus[0]
    assert "loop" not in first.ports.inlets
    assert f"skip store {first.value('skip_words'):,} {TIMES} {first.skip_word_bits} bit" in text
    assert "map store" not in text
