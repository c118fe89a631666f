"""Lookups: which of them follow a requantisation, and which take a copy of the map that they read; sizes; refusals."""

from collections.abc import Sequence

import pytest

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
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
from tests.rows import memory_rows

NPU = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, acc_bits=32, kfp=4, kgp=4, pfp=2, ol=2)


def conv(name: str, *reads: str, kind: type[Conv] = Conv, **more: object) -> tuple[Layer, Layer]:
    """A convolution, and its requantisation, which is called ``name``."""
    shape = {"kernel": (3, 3), "padding": (1,) * 4, "weight": signed(4), **more}
    return (
        kind(name=f"{name}_sums", inputs=reads, out_channels=5, **shape),  # type: ignore[arg-type]
        Requantise(name=name, encoding=signed(8)),
    )


def lookup(name: str, *reads: str) -> Layer:
    return Lookup(name=name, inputs=reads, encoding=signed(9))


def model(*layers: Layer) -> Model:
    source = Map(height=4, width=3, channels=5, encoding=unsigned(8))
    return random_model(Network(name="net", input=source, layers=layers), 3, 32)


def sized(npu: Npu, network: Model) -> Design:
    return size_memories("d", [network], [npu])


FIRST = conv("act_1")
END = Dense(name="dense_end", out_channels=3, weight=signed(4))
NETWORKS: dict[str, tuple[Sequence[Layer], Sequence[str]]] = {
    "behind a requantisation": ((*FIRST, lookup("act_2"), END), ()),
    "in front of a pool": ((*FIRST, lookup("act_2"), MaxPool(name="pool_2", kernel=(2, 2), stride=(1, 1)), END), ()),
    "at the end": ((*FIRST, lookup("act_2")), ()),
    "in front of an addition": (
        (*FIRST, *conv("act_2"), lookup("act_3"), Add(name="sum", inputs=("act_3", "act_1"), encoding=signed(8)), END),
        (),
    ),
    "behind an addition": (
        (*FIRST, *conv("act_2"), Add(name="sum", inputs=("act_2", "act_1"), encoding=signed(8)), lookup("act_3"), END),
        ("act_3_copy",),
    ),
    "behind another": ((*FIRST, lookup("act_2"), lookup("act_3"), END), ("act_3_copy",)),
    "behind a pool": (
        (*FIRST, MaxPool(name="pool_2", kernel=(2, 2), stride=(1, 1)), lookup("act_2"), END),
        ("act_2_copy",),
    ),
    "of the input": ((lookup("act_0", INPUT), *conv("act_1"), END), ("input_copy",)),
    "of a map with other readers": (
        (*FIRST, lookup("act_2"), *conv("act_3"), Add(name="sum", inputs=("act_3", "act_1"), encoding=signed(8)), END),
        ("act_2_copy",),
    ),
}
"""By what a lookup reads: a network, and the copies that are put in."""


@pytest.mark.parametrize("name", NETWORKS)
def test_copies(name):
    layers, copies = NETWORKS[name]
    design = sized(NPU, model(*layers))
    network_plan = plan(model(*layers), design.npus)
    copy_names = [layer.name for layer in network_plan.lowered.layers if layer.name.endswith("_copy")]
    assert copy_names == list(copies)
    tables = sum(isinstance(layer, Lookup) for layer in layers)
    assert design.npus[0].results.lookup_rows == 256 * tables
    rows = memory_rows(network_plan)["results"]
    assert [row["lookup_base"] for row in rows if row["looks_up"]] == [256 * k for k in range(tables)]


def test_a_pool_unit_with_weights_has_no_tables():
    """So the array computes a depthwise convolution with a lookup behind it; one in front of it is in the same trip."""
    shape = {"kind": DepthwiseConv}
    npu = NPU.changed(depthwise=True)
    behind = model(*FIRST, *conv("act_2", **shape), lookup("act_3"), END)  # type: ignore[arg-type]
    before = model(*FIRST, lookup("act_2"), *conv("act_3", **shape), END)  # type: ignore[arg-type]
    fused = [[p.depthwise is not None for p in plan(m, sized(npu, m).npus).lowered.layers] for m in (behind, before)]
    assert fused == [[False, False, False], [True, False]]


def test_without_lookups_there_are_none():
    """No memory, no field and no cycle."""
    npu = sized(NPU, model(*FIRST, END)).npus[0]
    assert npu.results.lookup_rows == 0
    assert "lookup_rows" not in npu.to_dict()
    assert "lookups" not in [memory.name for memory in memory_map(npu)]
    with_it = npu.changed(lookup_rows=256)
    latency = [timing.latencies(one).activation for one in (npu, with_it)]
    assert latency == [6, 8]


def test_an_npu_with_too_few_tables():
    network = model(*FIRST, lookup("act_2"), END)
    small = sized(NPU, network).npus[0].changed(lookup_rows=0)
    with value_error("net: lookup_rows must be >= 256, design d has 0"):
        compile_model(network, Manifest.of(Design(name="d", npus=(small,)), "0" * 64))
