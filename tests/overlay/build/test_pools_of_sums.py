"""Averages and sums of sums in front of thresholds, and pools before all convolutions, through the driver on the
simulated board: bit-exact with golden whatever stalls, in the flow model's cycles."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from bitloom.overlay.build.small_npu import INTEGER
from tests.cases import case_map
from tests.networks import random_images, random_integer_model, random_model
from tests.simulated import compare

CUT = {"kernel": (2, 3), "stride": (2, 1), "padding": (1, 0, 0, 2)}
"""Windows of a pool that have one to six taps."""
NARROW = Npu.of(kfp=5, kgp=4, pfp=2, ol=3, shift_bits=3)
"""Words are cut, and put together again, between all parts."""


def conv(number: int, weight: Encoding = BIPOLAR, **more: object) -> Conv:
    window = {"kernel": (2, 3), "stride": (1, 2), "padding": (1, 2, 0, 1)}
    return Conv(name=f"conv_{number}", out_channels=7, weight=weight, **window, **more)


def network(name: str, source: Encoding, *layers: Layer) -> Network:
    last = Dense(name="dense", out_channels=3)
    return Network(name=name, input=case_map(6, 7, 3, source), layers=(*layers, last))


BINARY = {
    name: random_model(network(name, source, *layers), seed)
    for seed, (name, source, layers) in enumerate([
        ("average", BIPOLAR, [conv(1), AvgPool(name="mean", **CUT), Threshold(name="act_1", levels=2),
                              MaxPool(name="pool", kernel=(1, 2), stride=(1, 1)), conv(2),
                              SumPool(name="sum", kernel=(2, 1), stride=(1, 1)), Threshold(name="act_2")]),
        ("average_of_planes", signed(8), [conv(1, TERNARY), AvgPool(name="mean", kernel=(3, 1), stride=(2, 1)),
                                          MaxPool(name="pool", **CUT), Threshold(name="act_1")]),
        ("bits_first", bipolar(2), [MinPool(name="first", **CUT), conv(1), Threshold(name="act_1")]),
        ("integers_first", unsigned(5), [AvgPool(name="first", **CUT), Threshold(name="act_1", levels=3), conv(2),
                                         Threshold(name="act_2")]),
    ])
}  # fmt: skip


def exact(model: Model, design: Design, choices: CompileChoices | None = None) -> None:
    """The results differ from each other, and are golden's."""
    images = random_images(model.network, 5, 3)
    assert len(np.unique(model.forward(images))) > 1
    compare(design, model, choices, images=images, batches=(5,), seed=2)


@pytest.mark.parametrize("name", BINARY)
def test_a_binary_npu(name: str) -> None:
    exact(BINARY[name], size_memories("pools", list(BINARY.values()), NARROW))


def test_the_average_of_windows_side_by_side_costs_no_beat() -> None:
    """Windows that neither overlap nor stick out: as many beats as the convolution has without the pool."""
    first = Conv(name="conv_1", out_channels=7, kernel=(3, 3), padding=(1, 1, 1, 1))
    source = case_map(6, 6, 5)
    beats = []
    for pools in ((), (AvgPool(name="mean", kernel=(3, 2), stride=(3, 2)),)):
        layers = (first, *pools, Threshold(name="act"), Conv(name="last", out_channels=3, kernel=(1, 1)))
        model = random_model(Network(name="side", input=source, layers=layers), 1)
        beats.append(dict(plan(model, [NARROW]).ideal)["conv_1"])
    assert beats[0] == beats[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"collect": 1, "kfp": 1, "shift_bits": 0}, {"one_memory": True}, {"accumulators": 4, "ol": 2},
        {"planes": 4, "kfp": 15}, {"raster": True},
    ],
    ids=str,
)  # fmt: skip
def test_other_binary_npus(more: dict) -> None:
    models = [BINARY["average"], BINARY["bits_first" if {"planes", "collect"} & set(more) else "integers_first"]]
    dataflow = CompileChoices(dataflow="auto") if "accumulators" in more else None
    design = size_memories("_".join(map(str, more)), models, NARROW.changed(**more), dataflow)
    for model in models:
        exact(model, design, dataflow)


@pytest.mark.slow
def test_streamed_weights() -> None:
    model = BINARY["average"]
    exact(model, size_memories("streamed", [model], NARROW, sizing=Sizing(stream_weights=True)))


@pytest.mark.slow
def test_an_integer_npu_in_front_of_a_binary_one() -> None:
    """It computes a first pool of integers, and the layer behind it with an average of its sums."""
    first = [MaxPool(name="first", **CUT), conv(1), AvgPool(name="mean", **CUT), Threshold(name="act_1")]
    model = random_integer_model(network("both", unsigned(7), *first), 1, 32)
    first_npu, last_npu = cascade([INTEGER.changed(kfp=5, kgp=4, pfp=2, ol=3), NARROW.changed(buffer_words=8)])
    npus = first_npu.changed(inlets=("host", "loop"), outlets=("ring", "loop")), last_npu
    exact(model, size_memories("both", [model], npus))


@pytest.mark.slow
def test_a_sum_in_front_of_a_requantisation() -> None:
    int8 = signed(8)
    layers = (conv(1, int8), SumPool(name="sum", **CUT), Requantise(name="act_1", encoding=int8),
              AvgPool(name="pool", kernel=(1, 2), stride=(1, 1)),
              Dense(name="dense", out_channels=3, weight=int8))  # fmt: skip
    model = random_integer_model(Network(name="sums", input=case_map(6, 7, 3, int8), layers=layers), 1, 32)
    exact(model, size_memories("sums", [model], INTEGER.changed(kfp=5, kgp=4, pfp=2, ol=3)))
