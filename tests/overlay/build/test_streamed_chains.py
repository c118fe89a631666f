"""Weights that come down the stream for several NPUs (spec B18): bit-exact under stalls, in the flow model's cycles."""

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from bitloom.driver.errors import PacketError
from bitloom.golden import zoo as named
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler import weight_order as weight_order_module
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Deadlock, simulate
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.compiler.weight_order import weight_order, whole_run, whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.virtual.sim import lint
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import random_images, random_model
from tests.simulated import compare, loaded, overlay

STALLS = {"source": 0.3, "sink": 0.3}
PULL = CompileChoices(map_order="pull")
NEXT = DIGITS.changed(planes=0, shift_bits=0)


def tight(model: Model, npus: Sequence[Npu], spare: int = 0) -> Design:
    """Kernel rows for the largest layer of each NPU, and ``spare`` more."""
    design = size_memories("tight", [model], npus, PULL, stream_bits=64, sizing=Sizing(stream_weights=True))
    network_plan = plan(model, design.npus, PULL)
    rows = [max(layer.kernel_rows for layer in network_plan.on(n)) + spare for n in range(len(design.npus))]
    return replace(design, npus=tuple(npu.changed(kernel_rows=max(2, r)) for npu, r in zip(design.npus, rows)))


@pytest.fixture(scope="module")
def model() -> Model:
    return named.load("digits-cnn")


def test_each_npu_has_a_kernel_memory_for_two_of_its_layers(model: Model) -> None:
    npus = cascade([DIGITS, NEXT.changed(kgp=2, ol=2)])
    network_plan = plan(model, npus, PULL)
    design = size_memories("d", [model], npus, PULL, sizing=Sizing(stream_weights=True))
    for n, npu in enumerate(design.npus):
        rows = [layer.kernel_rows for layer in network_plan.on(n)]
        assert npu.loader.stream_weights
        assert npu.array.kernel_rows == max(2, min(sum(rows), 2 * max(rows)))


def test_an_order_of_the_stream(model: Model) -> None:
    """Layers 0 and 2 take turns in one NPU, 1 and 3 in the other; the frame needs the first one's weights."""
    design = tight(model, ring([DIGITS, NEXT]))
    order = weight_order(plan(model, design.npus, PULL), design)
    assert order is not None
    assert [(packet.layer, packet.ahead) for packet in order.packets] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert order.before == 1
    manifest = Manifest.of(design, "0" * 64)
    program = compile_model(model, manifest, PULL)
    sent = [head for head, _, _ in packets(manifest, program.weights, kind="WEIGHTS")]
    assert [(head.npu, head.layer) for head in sent] == [(0, 0), (1, 1), (0, 2), (1, 3)]
    network = manifest.memory(0, "network")
    assert "streamed_layers" in network.widths
    assert "streamed_layers" not in manifest.memory(1, "network").widths, "the first NPU's counts all"


def test_what_blocks_is_found_and_refused(model: Model) -> None:
    """Weights in front of a frame that need the place of its own first layer, which can't be done before it came."""
    design = tight(model, ring([DIGITS, NEXT]))
    network_plan = plan(model, design.npus, PULL)
    modelled = whole_system(network_plan, design)
    assert modelled.weights_before == 1
    with pytest.raises(Deadlock) as blocked:
        simulate(replace(modelled, weights_before=3), 2)
    assert "the weights before a frame" in str(blocked.value)
    message = f"digits-cnn: some order of the streamed weights must not block, got {blocked.value}"
    with patch.object(weight_order_module, "simulate", side_effect=blocked.value), value_error(message):
        weight_order(network_plan, design)


def test_each_order_is_run_once(model: Model) -> None:
    """The run by which the order was chosen is the run that is asked for."""
    design = tight(model, ring([DIGITS, NEXT]))
    network_plan = plan(model, design.npus, PULL)
    with patch.object(weight_order_module, "simulate", wraps=simulate) as runs:
        run = whole_run(network_plan, design)
    tried = [call.args[0].weights_before for call in runs.call_args_list]
    assert len(set(tried)) == len(tried) > 1
    assert run == simulate(whole_system(network_plan, design), weight_order_module.ORDER_FRAMES)
    assert whole_run(network_plan, design, 2) == simulate(whole_system(network_plan, design), 2) != run


def test_a_layer_that_is_too_large(model: Model) -> None:
    design = tight(model, ring([DIGITS, NEXT]), -1)
    rows = [npu.array.kernel_rows for npu in design.npus]
    told = []
    for n, (has, layer) in enumerate(zip(rows, ("conv_3", "dense_4"))):
        told.append(f"kernel_rows must be >= {has + 1} for {layer}, NPU {n} of design {design.name} has {has}")
    with value_error(f"digits-cnn: {told[0]}; {told[1]}"):
        compile_model(model, Manifest.of(design, "0" * 64), PULL)


def test_a_small_ring() -> None:
    """Clean Verilog; bit-exact in the flow model's cycles, alone, one after another and under stalls. One of the NPUs
    makes its kernels binary on line."""
    layers = (f"conv_{k} {4 + k} 2x2, act_{k}" for k in range(4))
    model = random_model(network_of("6x6x3", *layers, name="small"), 5)
    small = Npu.of(kfp=4, kgp=2, pool=False, shift_bits=0)
    design = tight(model, ring([small, small.changed(kgp=3, kernel_binariser=True)]))
    assert lint(generate(design).text) == []
    program = compare(design, model, PULL, batches=(1, 4), stalls=STALLS, stalled_batch=2).program
    streamed = packets(overlay(design)[1], program.weights, kind="WEIGHTS")
    assert len(list(streamed)) == 4


@pytest.mark.slow
def test_packets_for_another_npu_are_refused(model: Model) -> None:
    """A packet whose number, layer or NPU is not the one in turn; then right results again."""
    design = tight(model, ring([DIGITS, NEXT]))
    bit, manifest = overlay(design)
    program = compile_model(model, manifest, PULL)
    images = random_images(model.network, 3, 1)
    sent = [
        np.concatenate([head.words(manifest.packet_magic), rows.ravel()])
        for head, _, rows in packets(manifest, program.weights, kind="WEIGHTS")
    ]
    for order in ([1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 1, 2, 3], [0, 1, 2]):
        words = [sent[k] for k in order]
        other = replace(program, weights=np.concatenate(words), weights_before=len(words[0]))
        with loaded(bit, program) as (accelerator, _):
            accelerator.program = other
            with pytest.raises(PacketError) as error:
                accelerator.predict(images)
            assert error.value.name == "BAD_ORDER"
            accelerator.program = program
            np.testing.assert_array_equal(accelerator.predict(images), packed.forward(model, images))
