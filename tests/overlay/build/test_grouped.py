"""Grouped convolutions on the simulated board, whose kernel groups read a part of each tuple: designs that are sized
for them, and rows of nonsense. Random networks with them are in board_cases.py."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.driver.errors import DeviceError
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from bitloom.overlay.fuzz.designs import GROUPED
from bitloom.overlay.virtual.sim import SimulationTimeout
from tests.graph_text import network_of
from tests.networks import random_images, random_model
from tests.simulated import compare, loaded, overlay

from .test_random_networks import layers_with_fewer_beats


def block(weight: str, features: str = "") -> Network:
    """A convolution of 1 x 1 taps, a grouped one, and one with fewer kernels than channels; maps of bits without
    ``features``."""
    layers = [f"conv_0 16 1x1 {weight}"]
    layers.append(f"grouped_conv conv_1 16 3x3 {weight} groups=4 padding=1")
    layers.append(f"grouped_conv conv_2 8 2x2 {weight} groups=2 padding=1")
    acts = (f"{layer}, act_{n} {features}" for n, layer in enumerate(layers))
    return network_of(f"5x6x7 {features}", *acts, name="block")


FOLDING = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, kfp=4, kgp=4, ol=2, pool=False)
BITS = FOLDING.changed(engine="binary", feature_bits=1, weight_bits=1)


@pytest.mark.parametrize("folding", [FOLDING, BITS], ids=["integer", "binary"])
def test_a_design_for_a_grouped_network_has_parts_and_fewer_kernel_rows(folding: Npu) -> None:
    """Sizing gives the NPU what reads parts where it saves beats; a network without groups runs on it, too."""
    integer = folding.engine == "integer"
    network = block("s4", "s4") if integer else block("ternary")
    model = random_model(network, 1, 16)
    choices = CompileChoices(map_order="raster")
    design = size_memories(f"sized_{folding.engine}", [model], folding, choices)
    npu = design.npus[0]
    visits = 1 if integer else 2
    assert npu.sequencer.tuple_parts == 1
    # conv_0: 2 words, 4 groups; conv_1: 9 taps of 1 word, 4 groups; conv_2: 4 taps of 2 words, 2 groups
    assert npu.array.kernel_rows == visits * (4 * 2 + 9 * 4 + 4 * 2 * 2)
    assert layers_with_fewer_beats(design, model, choices, compare(design, model, choices)) == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("field", ["part_words_minus_1", "part_step", "part_groups_minus_1"])
def test_rows_of_nonsense_do_no_lasting_harm(field: str) -> None:
    """A row that leads past the tuple gives other results, or none in time; the next program is computed rightly."""
    bit, manifest = overlay(GROUPED["int_parts"])
    network = block("s4", "s4")
    model = random_model(network, 1, 16)
    images = random_images(network, 2, 1)
    program = compile_model(model, manifest)
    layers = manifest.memory(0, "layers")
    parameters = program.parameters.copy()
    one = layers.field(field)
    (at,) = [rows for header, memory, rows in packets(manifest, parameters) if memory.name == "layers"]
    for bit_number in range(one.lsb, one.lsb + one.width):
        at[1, bit_number // 32] |= np.uint32(1 << bit_number % 32)
    with loaded(bit, program, timeout_cycles=50_000) as (accelerator, _):
        try:
            accelerator.load(replace(program, parameters=parameters))
            results = accelerator.predict(images, 2)
            assert not np.array_equal(results, model.forward(images))
        except (DeviceError, SimulationTimeout):
            pass
        accelerator.load(program)
        np.testing.assert_array_equal(accelerator.predict(images, 2), model.forward(images))
