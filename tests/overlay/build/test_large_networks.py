"""Networks larger than their device: cut for a board, compiled, and run on the virtual board."""

import numpy as np
import pytest

from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.partitioning import fitting_partitions
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.platform.boards import board
from tests.errors import value_error
from tests.hls_gen.compiler.test_partitions import residual
from tests.large_networks import mobilenet
from tests.simulated import loaded, overlay

FOLDING = {
    "kfp": 16,
    "kgp": 24,
    "pfp": 16,
    "ol": 4,
    "raster": True,
    "kernels_per_multiplier": 2,
    "pool_line_taps": 3,
    "depthwise": True,
    "lut_products": ("pool",),
}
STREAM_BITS = 64


def test_as_few_partitions_as_fit():
    """Where less block RAM is left, there are more of them, and then slices; at last nothing fits."""
    model = residual()
    npu = Npu.of(
        engine="integer", kfp=4, kgp=2, ol=2, pfp=2, feature_bits=9, weight_bits=8, acc_bits=32, kernel_ram="block"
    )
    whole = estimate(size_memories("block", [model], npu)).bram36

    def found(bram36):
        return fitting_partitions(model, (npu,), bram36, CompileChoices(), 32)

    assert found(whole) == {}
    some = found(whole - 0.5)
    assert len(some) > 1
    design = size_memories("block", [model], npu, CompileChoices(partitions=some))
    assert estimate(design).bram36 <= whole - 0.5
    with value_error("block: what begins with conv_1 must fit 0 BRAM36 in at most 64 slices, got 1.5"):
        found(0)


@pytest.mark.slow
def test_mobilenet_of_width_1_on_an_xc7z020():
    model = mobilenet(1.0)
    pynq = board("pynq-z1")
    npu = small_npu(model).changed(**FOLDING)
    slices = fitting_partitions(model, (npu,), pynq.bram36, CompileChoices(), STREAM_BITS)
    choices = CompileChoices(partitions=slices)
    design = size_memories("mobilenet", [model], npu, choices, stream_bits=STREAM_BITS)
    area = estimate(design)
    assert (area.lut + area.lutram, area.bram36, area.dsp) == (27_931, 128, 204)
    bit, manifest = overlay(design)
    network = compile_network(model, manifest, choices)
    assert len(network.programs) == 31
    assert sum(program.parameters.size for program in network.programs) == 2 * 553_144
    images = random_images(model.network, 1, 0)
    with loaded(bit, network, timeout_cycles=5_000_000) as (accelerator, _):
        np.testing.assert_array_equal(accelerator.predict(images), packed.forward(model, images))
        assert accelerator.counters()["cycles"] == 1_928_960
