"""The flow model of the reference networks, without simulation: figures that hardware was measured to have."""

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import FlowNpu, System, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.parts import present
from bitloom.overlay.build.small_npu import INTEGER


def reference(order: str) -> System:
    """A reference network on one NPU whose memories are as large as it needs."""
    model = networks.load("cifar-quick-int8")
    choices = CompileChoices(map_order=order)
    design = size_memories("cifar-quick-int8", [model], INTEGER, choices)
    return system(plan(model, design.npus, choices), design.npus, stream_bits=design.stream_bits)


def test_waits_of_the_reference_design() -> None:
    """Raster order by tables: taps that only take in a tuple cost a cycle each."""
    counts = simulate(reference("raster"), 2).npus[0]
    assert (counts.beats, counts.wait_input, counts.wait_room, counts.wait_table) == (220_512, 83, 0, 416)


def test_stores_are_as_full_as_the_compiler_says() -> None:
    """The map store never holds more than the largest map; a tuple memory is filled to the last word."""
    network_plan = reference("pull")
    stores = simulate(reference("pull"), 2).stores
    assert stores["npu0.tuple_words"] == network_plan.npus[0].npu.sequencer.tuple_words == 512
    assert 0 < stores["npu0.map_words"] <= network_plan.npus[0].npu.stores.map_words == 1024
    assert 0 < stores["npu0.pool_words"] <= present(network_plan.npus[0].npu.pool_unit).words


def test_buffers_of_an_npu_without_ring() -> None:
    assert FlowNpu(npu=INTEGER).buffer_words == 0
    ringed = INTEGER.changed(inlets=("host", "ring"), outlets=("ring", "host"), buffer_words=32)
    assert FlowNpu(npu=ringed).buffer_words == 32
