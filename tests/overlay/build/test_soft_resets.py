"""A soft reset while results wait: the next frames have their own results alone."""

import numpy as np
import pytest

from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from bitloom.overlay.fuzz.campaigns.device import packets_of
from bitloom.overlay.fuzz.hardware import Hardware
from tests.cases import random_model
from tests.graph_text import network_of
from tests.networks import random_images

NPU = Npu.of(engine="integer", feature_bits=6, weight_bits=5, shift_bits=0, acc_bits=20, kfp=4, kgp=4, ol=4, pool=False)
NPUS = {"one": [NPU], "two": list(cascade([NPU] * 2))}
FRAMES = 3


def network(count: int) -> Network:
    """Convolutions, one an NPU, of which the last one's map leaves."""
    return network_of("6x6x4 s6", *(f"conv_{k} 4 2x2 s5, requantise_{k} s6" for k in range(count)), name="resets")


@pytest.mark.sample(1)
@pytest.mark.parametrize("npus", NPUS)
def test_no_word_of_before_comes_after(npus: str) -> None:
    """The host takes nothing until words wait in every stage; a reset at any cycle around that forgets all of them."""
    model = random_model(network(len(NPUS[npus])), np.random.default_rng(3))
    design = size_memories(f"resets_{npus}", [model], NPUS[npus])
    target = Hardware(design)
    program = compile_model(model, target.manifest)
    images = random_images(model.network, FRAMES, 3)
    expected, transfers = target.recorded(program, images)
    assert np.array_equal(expected, model.forward(images))
    packets = packets_of(target.manifest, program, transfers)
    loads = sum(len(packet.words) for packet in packets if packet.load)
    control = target.manifest.register("CONTROL")
    reset = control.field("SOFT_RESET").at(1) | control.field("START").at(1)
    simulation = target.simulation
    target.accelerator.close()
    target.accelerator.reset()
    for cycles in (*range(40, 120, 17), 2000):
        simulation.stall(sink=1.0)
        for packet in packets:
            simulation.send(packet.words.ravel(), packet.lasts)
        simulation.step(loads + cycles)
        simulation.clear_source()
        simulation.write_register(control.offset, reset)
        simulation.stall()
        simulation.open_sink()
        for packet in packets:
            simulation.send(packet.words.ravel(), packet.lasts)
        simulation.step(20_000, watch=True)
        words, _ = simulation.received()
        assert len(words) == FRAMES * program.result_words, cycles
        assert np.array_equal(program.unpack_results(words), expected), cycles
        assert target.accelerator.registers.read("ERROR_CODE") == 0
        simulation.write_register(control.offset, reset)
