"""Every layer behind the sums becomes an action, or is refused: a place in a trip is not enough."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, Encoding, signed
from bitloom.golden.layer import Layer, OneInput
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler import depthwise, engine_rules
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.trips import Trip, needed, optional, tails_of
from bitloom.hls_gen.compiler.workloads import CutTarget
from tests.cases import case_map, random_model
from tests.errors import value_error

INT8 = signed(8)
INTEGER_ENGINE = Engine("integer", 8, 8)


@dataclass(frozen=True, kw_only=True)
class Mirror(OneInput):
    """A layer that nothing lowers."""

    kind: ClassVar[str] = "mirror"

    def output(self, source):
        return source

    def forward(self, x, arrays, source):
        return -1 - x


def lower(*layers: Layer, engine: Engine) -> None:
    network = Network(name="net", input=case_map(5, 6, 3, INT8), layers=layers)
    lower_alone(random_model(network, np.random.default_rng(0)), CutTarget(depthwise=True), engines=[engine])


def conv(name: str, kind: type[Conv] = Conv, weight: Encoding = INT8) -> Conv:
    return kind(name=name, out_channels=3, kernel=(2, 3), weight=weight)


ENGINES = {
    "binary": (conv("conv", weight=BIPOLAR), Threshold(name="act"), Engine()),
    "integer": (conv("conv"), Requantise(name="act", encoding=INT8), INTEGER_ENGINE),
}


@pytest.mark.parametrize("name", ENGINES)
def test_a_layer_that_nothing_lowers(name, monkeypatch):
    """An engine's rules take it, but no action computes it."""
    first, act, engine = ENGINES[name]
    wider = Trip(orders=((), (needed(type(act)), optional(Mirror))), rule="any")
    monkeypatch.setattr(engine_rules, name.upper(), wider)
    with value_error("mirror: nothing lowers a mirror"):
        lower(first, act, Mirror(name="mirror"), engine=engine)


def test_a_layer_behind_a_depthwise_convolution_that_nothing_lowers(monkeypatch):
    places = needed(Requantise), optional(Mirror)
    monkeypatch.setattr(engine_rules, "INTEGER", Trip(orders=(places,), rule="any"))
    monkeypatch.setattr(depthwise, "DEPTHWISE", tails_of(places))
    acts = [Requantise(name=name, encoding=INT8) for name in ("act_1", "act_2")]
    layers = conv("conv_1"), acts[0], conv("conv_2", DepthwiseConv), acts[1], Mirror(name="mirror")
    with value_error("mirror: nothing lowers a mirror"):
        lower(*layers, engine=INTEGER_ENGINE)
