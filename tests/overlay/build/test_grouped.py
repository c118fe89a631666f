"""Grouped convolutions on the simulated board, whose kernel groups read a part of each tuple: every result is golden's,
under random stalls, and without them every cycle is the flow model's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceError
from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.weight_streams import whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from bitloom.overlay.fuzz.designs import GROUPED, PARTS, ROOMY, ROOMY_INTEGER
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import SimulationTimeout
from tests.networks import IntegerChoices, grouped_networks, random_images, random_integer_model, random_model
from tests.rows import npu_rows
from tests.simulated import outputs, overlay, tally

INTEGER, BINARY = ROOMY_INTEGER.changed(**PARTS), ROOMY.changed(**PARTS)
DESIGNS = {
    **GROUPED,
    "k8": Design(name="k8", stream_bits=64, npus=(INTEGER.changed(kfp=8, kgp=8, pfp=8, ol=8, accumulators=4),)),
    "bits_raster": Design(name="bits_raster", npus=(BINARY.changed(kfp=2, kgp=6, pfp=3, ol=3, raster=True),)),
    "one_memory": Design(name="one_memory", npus=(INTEGER.changed(kfp=3, kgp=4, pfp=4, ol=2, one_memory=True),)),
}
"""Tables and counters, one and several accumulators, both engines; words of few channels, and words that groups
share."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grouped")


def drawn_model(design: Design, data: st.DataObject) -> Model:
    npu, seed = design.npus[0], data.draw(st.integers(0, 2**32 - 1))
    if npu.engine == "binary":
        return random_model(data.draw(grouped_networks()), seed)
    network = data.draw(grouped_networks(IntegerChoices.of(npu)))
    return random_integer_model(network, seed, npu.array.acc_bits, npu.results.multiplier_bits)


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """How many layers of the network that is drawn take fewer beats than with zeros."""
    design = DESIGNS[name]
    model = drawn_model(design, data)
    order = "raster" if design.npus[0].sequencer.raster else data.draw(st.sampled_from(["pull", "raster"]))
    choices = CompileChoices(map_order=order, dataflow=data.draw(st.sampled_from(["output_stationary", "auto"])))
    return compare(model, overlay(design, folder), choices, {key: data.draw(st.sampled_from([0.0, 0.4]))
                                                             for key in ("source", "sink")})  # fmt: skip


def compare(model: Model, design: tuple[Path, Manifest], choices: CompileChoices, stalls: dict[str, float]) -> str:
    """How many layers take fewer beats than with zeros, of a network that was compared with golden and with the flow
    model."""
    bit, manifest = design
    images = random_images(model.network, 4, 1)
    golden, made = packed.forward(model, images), plan(model, manifest.npus, choices)
    program = compile_model(model, manifest, choices)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    flow = simulate(whole_system(made, manifest.design), 4)
    assert counters["cycles"] == flow.left[3] + 1
    assert counters["npu0_beats"] == 4 * program.ideal_cycles
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=2)[0], golden)
    zeros = plan(model, [npu.changed(tuple_parts=0) for npu in manifest.npus], choices)
    fewer = [beats < whole for (_, beats), (_, whole) in zip(made.ideal, zeros.ideal)]
    rows = [sum(layer.count("kernels") for layer in npu_rows(of_plan)) for of_plan in (made, zeros)]
    assert (rows[0] < rows[1]) == any(fewer)
    return str(sum(fewer))


@pytest.mark.parametrize(("design", "count"), [("int_parts", 8), ("int_parts_raster", 6), ("parts", 6)])
def test_random_networks(design: str, count: int, folder: Path) -> None:
    found = tally(lambda data: check(design, folder, data), count)
    assert set(found) - {"0"}


def block(weight: Encoding, act: type[Threshold] | type[Requantise]) -> Network:
    """A grouped convolution between two of 1 x 1 taps, and one with fewer kernels than channels."""
    acts = {Threshold: {}, Requantise: {"encoding": signed(4)}}[act]
    layers: list[Layer] = []
    for n, (kernels, side, parts) in enumerate([(16, 1, 1), (16, 3, 4), (8, 2, 2)]):
        shape = {"name": f"conv_{n}", "out_channels": kernels, "kernel": (side, side), "weight": weight,
                 "padding": (side // 2,) * 4}  # fmt: skip
        layers += [GroupedConv(groups=parts, **shape) if parts > 1 else Conv(**shape), act(name=f"act_{n}", **acts)]
    encoding = signed(4) if act is Requantise else BIPOLAR
    return Network(name="block", input=Map(height=5, width=6, channels=7, encoding=encoding), layers=tuple(layers))


FOLDING = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, kfp=4, kgp=4, ol=2, pool=False)
BITS = FOLDING.changed(engine="binary", feature_bits=1, weight_bits=1)


@pytest.mark.parametrize("folding", [FOLDING, BITS], ids=["integer", "binary"])
def test_a_design_for_a_grouped_network_has_parts_and_fewer_kernel_rows(folding: Npu, folder: Path) -> None:
    """Sizing gives the NPU what reads parts where it saves beats; a network without groups runs on it, too."""
    integer = folding.engine == "integer"
    network = block(signed(4), Requantise) if integer else block(TERNARY, Threshold)
    model = random_integer_model(network, 1, 16) if integer else random_model(network, 1)
    choices = CompileChoices(map_order="raster")
    design = size_memories(f"sized_{folding.engine}", [model], folding, choices)
    npu, visits = design.npus[0], 1 if integer else 2
    assert npu.sequencer.tuple_parts == 1
    # conv_0: 2 words, 4 groups; conv_1: 9 taps of 1 word, 4 groups; conv_2: 4 taps of 2 words, 2 groups
    assert npu.array.kernel_rows == visits * (4 * 2 + 9 * 4 + 4 * 2 * 2)
    assert compare(model, overlay(design, folder), choices, {"source": 0.4, "sink": 0.4}) == "2"


@pytest.mark.parametrize("field", ["part_words_minus_1", "part_step", "part_groups_minus_1"])
def test_rows_of_nonsense_do_no_lasting_harm(field: str, folder: Path) -> None:
    """A row that leads past the tuple gives other results, or none in time; the next program is computed rightly."""
    bit, manifest = overlay(DESIGNS["int_parts"], folder)
    network = block(signed(4), Requantise)
    model, images = random_integer_model(network, 1, 16), random_images(network, 2, 1)
    program = compile_model(model, manifest)
    layers, parameters = manifest.memory(0, "layers"), program.parameters.copy()
    one, (at,) = layers.field(field), [rows for header, memory, rows in packets(manifest, parameters)
                                       if memory.name == "layers"]  # fmt: skip
    for bit_number in range(one.lsb, one.lsb + one.width):
        at[1, bit_number // 32] |= np.uint32(1 << bit_number % 32)
    board = activate()
    board.timeout_cycles = 50_000
    try:
        with Accelerator(bit, timeout=20.0) as accelerator:
            try:
                accelerator.load(replace(program, parameters=parameters))
                found = accelerator.predict(images, 2)
                assert not np.array_equal(found, model.forward(images))
            except (DeviceError, SimulationTimeout):
                pass
            accelerator.load(program)
            np.testing.assert_array_equal(accelerator.predict(images, 2), model.forward(images))
    finally:
        board.close()


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    found = tally(lambda data: check(design, folder, data), 60)
    assert {"0", "1", "2"} <= set(found)
