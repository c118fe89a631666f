"""Which engine an import takes: the one that costs less, of those that can compute the network; both are exact."""

import json

import numpy as np
import pytest

from bitloom.overlay.explore.lane_area import LUTS_OF_DSP, lane_area
from bitloom.overlay.importers.choose import costs_text
from tests.commands import call
from tests.errors import refusal

from .against import by_qonnx, check, import_chain
from .onnx_files import QONNX, Chain


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


def weights(chain, rng, bits, *shape):
    values = rng.normal(size=shape)
    if bits == 1:
        return chain.weight("BipolarQuant", values, 0.125, domain=QONNX)
    return chain.quant_weight(values, 0.5, bits)


def act(chain, bits, step=2.0):
    """Bits, ternary values (of "ternary"), or what a ReLU leaves."""
    if bits == 1:
        return chain.node("BipolarQuant", 1.0, domain=QONNX)
    if bits == "ternary":
        return chain.quant(step, 2, narrow=1)
    return chain.node("Relu").quant(step / 2, bits, signed=0)


def network(weight_bits, bits, source=1, channels=6):
    """A convolution and two dense layers; bias so that no sum is on a boundary."""
    rng = np.random.default_rng(7)
    chain = Chain((2, 5, 6))
    chain = chain.node("BipolarQuant", 1.0, domain=QONNX) if source == 1 else chain.quant(0.25, source)
    chain.node("Conv", weights(chain, rng, weight_bits, channels, 2, 1, 1), rng.normal(size=channels))
    act(chain, bits).node("Flatten")
    chain.node("Gemm", weights(chain, rng, weight_bits, channels, channels * 30), rng.normal(size=channels), transB=1)
    return act(chain, bits).node("Gemm", weights(chain, rng, weight_bits, 9, channels), transB=1)


BINARY = [(1, 1), (1, "ternary"), (1, 2), (1, 3), (2, 1), (2, "ternary"), (2, 2)]
CHOSEN = dict.fromkeys(BINARY, "binary") | dict.fromkeys([(1, 4), (2, 3), (2, 4)], "integer")
"""Bits of weights (2: ternary) and of activations -> the engine that costs less."""


@pytest.mark.parametrize(
    ("weight_bits", "bits"), [case if case in ((1, 2), (2, 3)) else slow(*case) for case in CHOSEN]
)
def test_the_engine_that_costs_less(weight_bits, bits):
    chain = network(weight_bits, bits)
    for engine in ("auto", "binary", "integer"):
        imported = check(chain, by_qonnx, engine=engine, images=6)
        wanted = CHOSEN[weight_bits, bits] if engine == "auto" else engine
        assert imported.choice.engines == (wanted,) * 3
        assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 3
        costs = {name: cost.price for name, cost in imported.choice.costs.items()}
        assert min(costs, key=costs.get) == CHOSEN[weight_bits, bits]


def test_costs_by_hand():
    """Ternary weights behind inputs of 3 bits, then behind ternary values: products, and the cycles of each."""
    costs = import_chain(network(2, "ternary", source=3, channels=2)).choice.costs
    lane = lane_area("binary", 1, 1, 8, 2)  # at most 60 sums of two bits
    first, second, third = 30 * 2 * 2, 2 * 60, 9 * 2
    visits = (first * 2 * 4 + (second + third) * 2 * 2) / (first + second + third)
    assert costs["binary"].lut == pytest.approx(lane.lut * visits)
    assert costs["integer"].lut == pytest.approx(lane_area("integer", 3, 2, 7).lut)
    assert (costs["binary"].dsp, costs["integer"].dsp) == (0, 0)


def test_dsp_blocks_count():
    """With 8-bit inputs every lane of the integer engine has a DSP block."""
    imported = import_chain(network(1, 2, source=8))
    cost = imported.choice.costs["integer"]
    assert (imported.choice.engines, cost.dsp) == (("binary",) * 3, 1)
    assert cost.price == cost.lut + LUTS_OF_DSP
    text = costs_text(imported.choice.costs)["on the integer one"]
    assert text == f"{cost.price:.1f} LUT a product and cycle, 1.00 DSP among them for 242 each"


def test_what_the_compiler_can_not_is_not_chosen():
    """Halves of an odd number of ternary products have no sums on the binary engine."""
    imported = import_chain(network(2, 1, channels=5))
    assert imported.choice.costs["binary"].price < imported.choice.costs["integer"].price
    assert imported.choice.engines == ("integer",) * 3
    assert imported.choice.why == (
        "the integer engine computes all: on the binary one, which costs less, dense_3: ternary weights without a "
        "threshold need a bipolar map with an even number of bits at each position, got 5 channels of bipolar 1 bit "
        "(-1..1 in steps of 2)"
    )


def both_kinds(padding):
    """A padded bipolar map, which the binary engine alone can read; ternary weights; and weights of -2..1."""
    rng = np.random.default_rng(3)
    chain = Chain((2, 6, 6)).node("BipolarQuant", 1.0, domain=QONNX)
    chain.node("Conv", weights(chain, rng, 1, 4, 2, 3, 3), rng.normal(size=4), pads=[1, 1, 1, 1])
    act(chain, 2, step=1.0)
    kernel = 1 + 2 * padding
    weight = chain.quant_weight(rng.normal(size=(3, 4, kernel, kernel)), 0.5, 2, narrow=0)
    chain.node("Conv", weight, rng.normal(size=3), pads=[padding] * 4)
    act(chain, 3, step=8.0).node("Flatten")
    chain.node("Gemm", weights(chain, rng, 2, 6, 108), rng.normal(size=6), transB=1)
    act(chain, 2, step=4.0)
    return chain.node("Gemm", chain.quant_weight(rng.normal(size=(5, 6)), 0.5, 2, narrow=0), transB=1)


def test_each_layer_where_it_must_or_costs_less():
    imported = check(both_kinds(0), by_qonnx)
    assert imported.choice.engines == ("binary", "integer", "integer", "integer")
    reason = "a padded tap is worth 0, which is none of its map's integers"
    assert imported.choice.costs["integer"] == f"Conv_2: {reason}"
    assert imported.choice.costs["binary"] == "Conv_6: weights are signed 2 bit (-2..1)"
    assert imported.choice.costs["both"].price < 20


def test_padding_of_a_map_of_bits():
    """The integer engine reads the binary one's map as bits, none of which is 0."""
    with refusal("Conv_6: a padded tap is worth 0, which is not in the middle of its map's values"):
        import_chain(both_kinds(1))


def test_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # what is narrower breaks the lines that are looked for
    (tmp_path / "net.onnx").write_bytes(network(2, 3).bytes())
    done = call("import", "net.onnx", "--explain", "--json", "--check", "0")
    facts = json.loads(done.output)
    assert facts["why"] == "the integer engine computes all: it costs less"
    assert facts["costs"]["integer"]["lut"] < facts["costs"]["binary"]["lut"]
    binary, integer = (f"{facts['costs'][name]['lut']:.1f} LUT a product and cycle" for name in ("binary", "integer"))
    page = (tmp_path / "net.import.md").read_text(encoding="utf-8")
    assert f"| on the binary one | {binary} |\n| on the integer one | {integer} |" in page
    done = call("import", "net.onnx", "--engine", "binary", "--check", "0")
    assert "the binary engine computes all: it was asked for" in done.output
    assert binary in done.output
    assert integer in done.output
