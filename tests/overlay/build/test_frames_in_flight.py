"""A long cascade of small layers, through which more frames could go at a time than the loader keeps flags of."""

from dataclasses import replace

import numpy as np

from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import FRAMES_IN_FLIGHT
from bitloom.hls_gen.design.topology import cascade
from tests.cases import random_model
from tests.graph_text import network_of
from tests.simulated import compare

NPUS = 9
NPU = Npu.of(engine="integer", feature_bits=6, weight_bits=5, shift_bits=0, acc_bits=20, kfp=4, kgp=4, ol=4, pool=False)
NETWORK = network_of("1x1x4 s6", *(f"dense fc_{k} 4 s5, requantise_{k} s6" for k in range(NPUS)), name="many")


def test_frames_wait_for_a_flag_as_the_flow_model_says() -> None:
    """One flag more than the FIFO's words waits in its output register."""
    model = random_model(NETWORK, np.random.default_rng(5))
    design = size_memories("many", [model], cascade([NPU] * NPUS), stream_bits=64)
    design = replace(design, npus=tuple(npu.changed(tuple_words=16, map_words=16) for npu in design.npus))
    flow = simulate(system(plan(model, design.npus), design.npus), 60)
    in_flight = [sum(begin <= now < left for begin, left in zip(flow.accepted, flow.left)) for now in flow.accepted]
    assert max(in_flight) == FRAMES_IN_FLIGHT + 1
    compare(design, model, batches=(1, 17, 18, 30, 60))
