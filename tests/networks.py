"""Random networks for property tests of the binary and of the integer engine, and of both in turn: whatever is drawn
must be bit-exact. They are those of the campaigns (overlay/fuzz) and those of tests/random_networks, with
choices by Hypothesis."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bitloom.golden.layers.rounding import ROUNDINGS
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.images import random_images
from bitloom.overlay.fuzz import random_networks as makers
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import IntegerChoices
from tests.random_networks.blocks import joined_network, residual_network
from tests.random_networks.graphs import graph_network
from tests.random_networks.mixed import mixed_network
from tests.random_networks.sign_blocks import binary_residual_network

__all__ = [
    "BYTES",
    "SEEDS",
    "WIDE",
    "IntegerChoices",
    "binary_residual_networks",
    "check_draws",
    "few_and_many",
    "graph_networks",
    "integer_networks",
    "joined_networks",
    "mixed_networks",
    "model_of",
    "networks",
    "random_images",
    "random_model",
    "residual_networks",
    "some",
]
BYTES = IntegerChoices(feature_bits=8, weight_bits=8, roundings=ROUNDINGS)
"""Choices of layers of 8 bits."""
WIDE = IntegerChoices(feature_bits=9, weight_bits=8, roundings=ROUNDINGS)
"""Choices of layers with the widest features."""
SEEDS = st.integers(0, 2**32 - 1)
"""Seeds of numpy's random generators."""


def some(count: int) -> settings:
    """So many draws; one that fails is shown as it is."""
    return settings(max_examples=count, phases=[Phase.generate])


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """A test with an argument ``count``: so many draws in the default tier, and so many in the slow one."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])


def check_draws(count: int, check: Callable[..., object], *strategies: st.SearchStrategy[Any]) -> None:
    """Call ``check`` with so many draws of the strategies."""
    some(count)(given(st.tuples(*strategies))(lambda drawn: check(*drawn)))()


def model_of(network: Network, seed: int, npu: Npu) -> Model:
    """Random arrays that the NPU's engine takes."""
    return random_model(network, seed, npu.array.acc_bits, npu.value("multiplier_bits"))


def drawn(maker: Callable[..., Any]) -> Callable[..., st.SearchStrategy[Any]]:
    """A maker as a strategy, with the same parameters: Hypothesis draws the seed, the maker the rest of it, as in a
    campaign."""
    return lambda *args, **options: SEEDS.map(lambda seed: maker(Pick(seed), *args, **options))


networks = drawn(makers.binary_network)
integer_networks = drawn(makers.integer_network)
mixed_networks = drawn(mixed_network)
residual_networks = drawn(residual_network)
graph_networks = drawn(graph_network)
joined_networks = drawn(joined_network)
binary_residual_networks = drawn(binary_residual_network)
