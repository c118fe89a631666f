"""Joined taps: the rewritten first layer against golden, and whole networks on hardware with a window former, bit for
bit and cycle for cycle."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler import plan as plans
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.joined_taps import joined_taps
from bitloom.hls_gen.compiler.lowering import lower_alone, lower_integer
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.npu import Npu
from tests.networks import random_images, random_integer_model, random_model
from tests.simulated import overlay, tally

from .test_flow_hardware import BATCHES, DESIGNS, check, per_design

INTEGER = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=16, acc_bits=32, window_former=True)
PLANES = Npu.of(kfp=20, kgp=4, planes=4, window_former=True)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def networks(draw, npu: Npu, largest: int = 12) -> Network:
    """A first layer of few channels for the NPU's engine and any kernel, and what may follow it."""
    integer, number = npu.engine == "integer", lambda low, high: draw(st.integers(low, high))
    channels = number(1, 3)
    kernel = number(1, 12 // channels if 12 // channels < 5 else 5), number(1, 5)
    integers = [signed(4), unsigned(3)] * (integer or npu.array.planes > 0)
    encoding = draw(st.sampled_from([*integers, *[BIPOLAR] * (not integer)]))
    padding = tuple(number(0, min(2, kernel[k % 2] - 1)) for k in range(4)) if encoding.kind != "bipolar" else (0,) * 4
    source = Map(height=number(kernel[0], largest), width=number(kernel[1], largest), channels=channels,
                 encoding=encoding)  # fmt: skip
    activated = number(0, 2) > 0
    exact = activated or channels % 2 == 0  # sums of ternary weights need an even number of bits
    bits = [BIPOLAR, TERNARY] if encoding == BIPOLAR and exact else [BIPOLAR]
    weight = signed(4) if integer else draw(st.sampled_from(bits))
    shape = {"kernel": kernel, "stride": (number(1, 3), number(1, 3)), "padding": padding}
    layers: list[Layer] = [Conv(name="conv_1", out_channels=number(1, 20), weight=weight, **shape)]
    if activated:
        layers.append(Requantise(name="act_1", encoding=signed(4)) if integer else Threshold(name="act_1"))
        at = layers[0].output(source)
        if number(0, 1) and min(at.height, at.width) > 1:
            layers.append(MaxPool(name="pool_1", kernel=(2, 2), stride=(number(1, 2), 1)))
        layers.append(Dense(name="dense_2", out_channels=number(1, 9), weight=signed(4) if integer else BIPOLAR))
    return Network(name="few", input=source, layers=tuple(layers))


def made(network: Network, seed: int, npu: Npu) -> Model:
    return random_integer_model(network, seed, 32) if npu.engine == "integer" else random_model(network, seed)


@pytest.mark.parametrize("npu", [INTEGER, PLANES], ids=["integer", "planes"])
def test_the_rewritten_layer_computes_the_same(npu: Npu) -> None:
    @per_design(40)
    @given(networks(npu), SEEDS)
    def same(network: Network, seed: int) -> None:
        model, images = made(network, seed, npu), random_images(network, 2, seed)
        lowered = lower_integer(model, 9, 8) if npu.engine == "integer" else lower_alone(model, npu.array.planes)
        joined = joined_taps(lowered, npu)
        if joined is None:
            assert network.layers[0].kernel == (1, 1)
        elif npu.array.planes and not lowered.input_bits and any(network.layers[0].padding):
            raise AssertionError("bits with padding are not among these networks")
        else:
            np.testing.assert_array_equal(joined.forward(images), lowered.forward(images))

    same()


def compare(design: str, folder: Path, data: st.DataObject) -> str:
    """What became of a network that is drawn: formed and compared, or why not."""
    bit, manifest = overlay(DESIGNS[design], folder)
    npus = manifest.npus
    network, seed = data.draw(networks(npus[0])), data.draw(SEEDS)
    model = made(network, seed, npus[0])
    choices = CompileChoices(map_order=data.draw(st.sampled_from(["raster", "auto", "columns"])))
    if npus[0].sequencer.raster:
        choices = CompileChoices(map_order="raster")
    try:
        program = compile_model(model, manifest, choices)
    except ValueError as error:
        return str(error)
    found = plan(model, npus, choices)
    check(found, manifest, bit, program, random_images(network, max(BATCHES), seed))
    return "formed" if found.formed else "passed by"


def compare_many(design: str, folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "pays", lambda *_: True)  # also where it takes longer
    found = tally(lambda data: compare(design, folder, data), count)
    assert found["formed"] >= count / 3, found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joined_taps")


def test_networks_on_hardware(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_many("integer", folder, 6, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["integer", "planes_former", "ring_former", "wide_former"])
def test_many_networks_on_hardware(design: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_many(design, folder, 50, monkeypatch)
