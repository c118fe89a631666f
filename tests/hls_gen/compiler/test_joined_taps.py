"""Joined taps: the rewritten first layer against golden. Whole networks on hardware with a window former are in
tests/overlay/build/board_cases.py."""

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.joined_taps import joined_taps
from bitloom.hls_gen.compiler.lowering import lower_alone, lower_integer
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from tests.networks import SEEDS, first_layers, model_of, random_images, random_model
from tests.simulated import tally

INTEGER = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=16, acc_bits=32, window_former=True)
PLANES = Npu.of(kfp=20, kgp=4, planes=4, window_former=True)


@pytest.mark.parametrize("npu", [INTEGER, PLANES], ids=["integer", "planes"])
def test_the_rewritten_layer_computes_the_same(npu: Npu) -> None:
    def same(data: st.DataObject) -> str:
        network, seed = data.draw(first_layers(npu)), data.draw(SEEDS)
        model, images = model_of(network, seed, npu), random_images(network, 2, seed)
        lowered = lower_integer(model, 9, 8) if npu.engine == "integer" else lower_alone(model, npu.array.planes)
        joined = joined_taps(lowered, npu)
        if joined is None:
            of_bits = npu.array.planes > 0 and not lowered.input_bits
            assert of_bits or network.layers[0].kernel == (1, 1)
            return "as it is"
        np.testing.assert_array_equal(joined.forward(images), lowered.forward(images))
        return "joined"

    assert tally(same, 40)["joined"] >= 20


def test_bits_on_an_npu_with_bit_planes() -> None:
    """An array with bit planes takes integers from its former: of a layer of bits taps are read one by one."""
    layers = (Conv(name="conv_1", out_channels=8, kernel=(3, 3)),)
    source = Map(height=8, width=8, channels=3, encoding=BIPOLAR)
    model = random_model(Network(name="bits", input=source, layers=layers), 1)
    design = size_memories("bits", [model], Npu.of(kfp=64, planes=8, window_former=True))
    compile_model(model, Manifest.of(design, "0" * 64))
