"""Lookups: which of them follow a requantisation, and which take a copy of the map that they read; sizes; refusals."""

import pytest

from bitloom.golden.layer import Layer
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.fuzz.random_models import random_model
from tests.errors import value_error
from tests.graph_text import BUILDERS, layers_of, network_of
from tests.rows import memory_rows

NPU = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, acc_bits=32, kfp=4, kgp=4, pfp=2, ol=2)


def act(name: str, *reads: str, kind: str = "conv") -> tuple[Layer, ...]:
    """A requantisation, and in front of it a convolution."""
    return layers_of([" ".join([kind, f"{name}_sums", *reads, "5 3x3 s4 padding=1"]), f"requantise {name} s8"])


def model(*parts: str) -> Model:
    return random_model(network_of("4x3x5 u8", *parts, builders={**BUILDERS, "act": act}), 3, 32)


def sized(npu: Npu, network: Model) -> Design:
    return size_memories("d", [network], [npu])


END = "dense_end 3 s4"
NETWORKS = {
    "behind a requantisation": (f"act_1, lookup act_2 s9, {END}", ()),
    "in front of a pool": (f"act_1, lookup act_2 s9, max_pool pool_2 2x2 1x1, {END}", ()),
    "at the end": ("act_1, lookup act_2 s9", ()),
    "in front of an addition": (f"act_1, act_2, lookup act_3 s9, add sum act_3 act_1 s8, {END}", ()),
    "behind an addition": (f"act_1, act_2, add sum act_2 act_1 s8, lookup act_3 s9, {END}", ("act_3_copy",)),
    "behind another": (f"act_1, lookup act_2 s9, lookup act_3 s9, {END}", ("act_3_copy",)),
    "behind a pool": (f"act_1, max_pool pool_2 2x2 1x1, lookup act_2 s9, {END}", ("act_2_copy",)),
    "of the input": (f"lookup act_0 @input s9, act_1, {END}", ("input_copy",)),
    "of a map with other readers": (
        f"act_1, lookup act_2 s9, act_3, add sum act_3 act_1 s8, {END}",
        ("act_2_copy",),
    ),
}
"""By what a lookup reads: a network, and the copies that are put in."""


@pytest.mark.parametrize("name", NETWORKS)
def test_copies(name):
    text, copies = NETWORKS[name]
    design = sized(NPU, model(text))
    network_plan = plan(model(text), design.npus)
    copy_names = [layer.name for layer in network_plan.lowered.layers if layer.name.endswith("_copy")]
    assert copy_names == list(copies)
    tables = text.count("lookup")
    assert design.npus[0].results.lookup_rows == 256 * tables
    rows = memory_rows(network_plan)["results"]
    assert [row["lookup_base"] for row in rows if row["looks_up"]] == [256 * k for k in range(tables)]


def test_a_pool_unit_with_weights_has_no_tables():
    """So the array computes a depthwise convolution with a lookup behind it; one in front of it is in the same trip."""
    npu = NPU.changed(depthwise=True)
    behind = model(f"act_1, act_2 kind=depthwise, lookup act_3 s9, {END}")
    before = model(f"act_1, lookup act_2 s9, act_3 kind=depthwise, {END}")
    fused = [[p.depthwise is not None for p in plan(m, sized(npu, m).npus).lowered.layers] for m in (behind, before)]
    assert fused == [[False, False, False], [True, False]]


def test_without_lookups_there_are_none():
    """No memory, no field and no cycle."""
    npu = sized(NPU, model("act_1", END)).npus[0]
    assert npu.results.lookup_rows == 0
    assert "lookup_rows" not in npu.to_dict()
    assert "lookups" not in [memory.name for memory in memory_map(npu)]
    with_it = npu.changed(lookup_rows=256)
    latency = [timing.latencies(one).activation for one in (npu, with_it)]
    assert latency == [6, 8]


def test_an_npu_with_too_few_tables():
    network = model("act_1, lookup act_2 s9", END)
    small = sized(NPU, network).npus[0].changed(lookup_rows=0)
    with value_error("net: lookup_rows must be >= 256, design d has 0"):
        compile_model(network, Manifest.of(Design(name="d", npus=(small,)), "0" * 64))
