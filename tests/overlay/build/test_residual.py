"""Residual networks, concatenations and any other graphs on the simulated board: every result is golden's, under
random stalls, and without them every cycle is the flow model's."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from tests.networks import (
    IntegerChoices,
    graph_networks,
    joined_networks,
    random_images,
    random_integer_model,
    residual_networks,
)
from tests.simulated import outputs, overlay

NPU = Npu.of(
    engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, acc_bits=32, multiplier_bits=31, round_twice=1,
    layers=24, tuple_words=512, pool_words=512, pool_tuple_words=64, taps=8192, olds=8192, jumps=4096, pool_taps=4096,
    pool_olds=4096, kernel_rows=1 << 14, threshold_rows=2048, map_words=1024, skip_words=1024, joined_words=16,
)  # fmt: skip
DESIGNS = {
    "k4": Design(name="k4", npus=(NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512, depthwise=True),)),
    "k8": Design(name="k8", stream_bits=64, npus=(NPU.changed(kfp=8, kgp=6, pfp=4, ol=2, accumulators=16),)),
    "k2_ol4": Design(name="k2_ol4", npus=(NPU.changed(kfp=2, kgp=4, pfp=4, ol=4, raster=True, aheads=512),)),
    "without_pool": Design(name="without_pool", npus=(NPU.changed(kfp=4, kgp=8, ol=4, pool=False, skip_words=63),)),
}
"""Foldings in which words hold several steps, or steps several words; tables with and without tuples that are claimed
ahead, and counters; one and several accumulators; block RAM and LUT RAM; pool units with weights and without."""


RULES = (
    "which it adds, must have the lanes", "must be >= ", "a pool needs an NPU with a pool unit",
)  # fmt: skip
"""Why a network may be refused."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("residual")


def check(design: str, folder: Path, data: st.DataObject, networks: st.SearchStrategy[Network]) -> bool:
    """Whether the network that is drawn fits the design and was compared."""
    bit, manifest = overlay(DESIGNS[design], folder)
    network, seed = data.draw(networks), data.draw(st.integers(0, 2**32 - 1))
    raster = manifest.npus[0].sequencer.raster
    order = "raster" if raster else data.draw(st.sampled_from(["pull", "raster"]))
    dataflow = data.draw(st.sampled_from(["output_stationary", "auto"]))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    model, images = random_integer_model(network, seed, 32, 31), random_images(network, 4, seed)
    choices = CompileChoices(map_order=order, dataflow=dataflow)
    try:
        program = compile_model(model, manifest, choices)
    except ValueError as e:
        if not any(rule in str(e) for rule in RULES):
            raise
        return False
    golden = model.forward(images)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    flow = simulate(system(plan(model, manifest.npus, choices), manifest.npus, stream_bits=manifest.stream_bits), 4)
    assert counters["cycles"] == flow.left[3] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=seed)[0], golden)
    return True


RESIDUAL, JOINED, GRAPHS = (
    networks(IntegerChoices(feature_bits=9, roundings=NPU.results.roundings))
    for networks in (residual_networks, joined_networks, graph_networks)
)


def check_many(design: str, folder: Path, count: int, networks: st.SearchStrategy[Network]) -> int:
    """How many of ``count`` networks were compared."""
    compared = []

    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), print_blob=True,
    )  # fmt: skip
    @given(st.data())
    def run(data: st.DataObject) -> None:
        compared.append(check(design, folder, data, networks))

    run()
    return sum(compared)


def test_random_residual_networks(folder: Path) -> None:
    assert check_many("k4", folder, 20, RESIDUAL) == 20


def test_random_concatenations(folder: Path) -> None:
    assert check_many("k4", folder, 8, JOINED) >= 7


def test_random_graphs(folder: Path) -> None:
    assert check_many("k4", folder, 6, GRAPHS) == 6


def conv(name: str, reads: str, channels: int, side: int = 1, stride: int = 1) -> tuple[Layer, Layer]:
    """A convolution and its requantisation, which is called after it."""
    act, size = name.replace("conv", "act"), {"kernel": (side, side), "stride": (stride, stride)}
    made = Conv(name=name, out_channels=channels, padding=(0, 0, side - 1, side - 1), weight=signed(8), inputs=(reads,),
                **size)  # fmt: skip
    return made, Requantise(name=act, encoding=signed(8), inputs=(name,))


@pytest.mark.slow
@pytest.mark.parametrize("aheads", [0, 2])
def test_more_comes_by_than_the_tuple_memory_holds(aheads: int, folder: Path) -> None:
    """Tuples of 16 words, of which one layer reads every fourth: between two of its windows 8 others come by."""
    layers = [
        *conv("conv_1", INPUT, 64),
        *conv("conv_2", "act_1", 4),
        *conv("conv_3", "act_2", 4, 2, 2),
        *conv("conv_4", "act_1", 4, 1, 2),
        Add(name="add_5", encoding=signed(8), inputs=("act_3", "act_4")),
    ]
    network = Network(name="wide", input=Map(height=5, width=7, channels=4, encoding=signed(8)), layers=tuple(layers))
    model, images = random_integer_model(network, 1, 32), random_images(network, 4, 1)
    choices = CompileChoices(map_order="raster")
    folding = NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=aheads)
    made = size_memories(f"wide_{aheads}", [model], (folding,), choices)
    assert made.npus[0].sequencer.tuple_words <= 32 < 8 * 16
    bit, manifest = overlay(made, folder)
    found, counters = outputs(bit, compile_model(model, manifest, choices), images)
    np.testing.assert_array_equal(found, model.forward(images))
    flow = simulate(system(plan(model, manifest.npus, choices), manifest.npus), 4)
    assert counters["cycles"] == flow.left[3] + 1


def steps_of_several_words(folding: dict[str, object], folder: Path) -> None:
    """Twice in turn a map waits for what two convolutions make of it, in stores of the sizes that are found."""
    layers: list[Layer] = [*conv("conv_0", INPUT, 16)]
    for k, read in ((1, "act_0"), (4, "add_3")):
        layers += [*conv(f"conv_{k}", read, 16, 3), *conv(f"conv_{k + 1}", f"act_{k}", 16, 3)]
        layers.append(Add(name=f"add_{k + 2}", encoding=signed(8), inputs=(f"act_{k + 1}", read)))
    network = Network(name="blocks", input=Map(height=5, width=4, channels=3, encoding=signed(8)), layers=tuple(layers))
    model, images = random_integer_model(network, 1, 32), random_images(network, 4, 1)
    name = "_".join(f"{key}_{value}" for key, value in folding.items())
    bit, manifest = overlay(size_memories(name, [model], (NPU.changed(**folding),)), folder)
    program = compile_model(model, manifest)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, model.forward(images))
    assert counters["cycles"] == simulate(system(plan(model, manifest.npus), manifest.npus), 4).left[3] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, source=0.4, sink=0.4, seed=1)[0], found)


def test_steps_of_several_words(folder: Path) -> None:
    steps_of_several_words({"kfp": 2, "kgp": 4, "ol": 4, "pfp": 1}, folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "folding",
    [
        {"kfp": 8, "kgp": 16, "ol": 16, "pfp": 1},
        {"kfp": 1, "kgp": 8, "ol": 4, "pfp": 2, "accumulators": 4},
        {"kfp": 4, "kgp": 8, "ol": 8, "pfp": 4, "raster": True},
        {"kfp": 2, "kgp": 16, "ol": 16, "pool": False},
    ],
)
def test_steps_of_many_words(folding: dict[str, object], folder: Path) -> None:
    steps_of_several_words(folding, folder)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_residual_networks(design: str, folder: Path) -> None:
    assert check_many(design, folder, 50, RESIDUAL) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_concatenations(design: str, folder: Path) -> None:
    assert check_many(design, folder, 100, JOINED) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_graphs(design: str, folder: Path) -> None:
    assert check_many(design, folder, 50, GRAPHS) >= (30 if DESIGNS[design].npus[0].pool_unit else 10)
