"""Factors of a requantisation in lowest terms, and the widths and the rows that they get."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.actions import Scale
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from tests.errors import value_error
from tests.rows import npu_rows

INTEGER = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, acc_bits=12, kfp=2, kgp=2, ol=1)


@pytest.mark.parametrize(
    ("multipliers", "bits"),
    [([1, 1], 0), ([8, 8], 4), ([1, 2], 2), ([7], 3), ([8], 4), ([65_535], 16), ([(1 << 31) - 1], 31)],
)
def test_multipliers_are_as_wide_as_the_largest(multipliers: list[int], bits: int) -> None:
    """The numbers in lowest terms."""
    multiplier = np.array(multipliers, np.int64)[:, None]
    scale = Scale(bias=multiplier * 0, multiplier=multiplier, shift=multiplier * 0, low=-8, high=7)
    assert scale.needs["multiplier_bits"] == bits


def model(bias: int, multiplier: int, shift: int, fraction: int) -> Model:
    """One product of 4 bits, requantised."""
    act = Requantise(name="r", encoding=signed(4), fraction=fraction)
    layers = Dense(name="a", out_channels=1, weight=signed(4)), act
    scale = {"bias": np.array([bias]), "multiplier": np.array([multiplier]), "shift": np.array([shift])}
    source = Map(height=1, width=1, channels=1, encoding=signed(4))
    weight = {"weight": np.full((1, 1, 1, 1), 7)}
    return Model(Network(name=f"f{fraction}", input=source, layers=layers), {"a": weight, "r": scale})


MODELS = [model(0, 1, 2, 0), model(5, 0x7FFFFFFF, 33, 1), model(-3, 6, 11, 9)]


def test_capacities_are_those_of_the_layer_that_needs_most() -> None:
    npus = [size_memories("d", models, INTEGER).npus[0] for models in (*([one] for one in MODELS), MODELS)]
    assert [npu.results.multiplier_bits for npu in npus] == [0, 31, 16, 31]  # with margins: 0, 31 and 2 are needed
    assert [npu.results.bias_fraction_bits for npu in npus] == [0, 1, 9, 9]


def test_a_design_rounds_to_even_where_a_layer_does() -> None:
    """Its other layers keep rounding away from zero; a design without it refuses the network."""
    away, even = model(5, 3, 4, 0), model(5, 3, 4, 0)
    act = replace(even.network.layers[1], rounding="even")
    even = Model(replace(even.network, name="even", layers=(even.network.layers[0], act)), dict(even.arrays))
    (with_it,), (without,) = (size_memories("d", models, INTEGER).npus for models in ([away, even], [away]))
    assert (with_it.results.half_even, without.results.half_even) == (1, 0)
    assert memory_of(with_it, "results").field("half_even").width == 1
    rows = [npu_rows(plan(m, [with_it]))[0].row("results")["half_even"] for m in (away, even)]
    assert rows == [0, 1]
    small = Manifest.of(Design(name="d", npus=(without,)), "0" * 64)
    with value_error("even: half_even must be >= 1, design d has 0"):
        compile_model(even, small)


def test_a_design_rounds_twice_where_a_layer_does() -> None:
    """Its factors stay as they are: the first rounding is after 31 bits of just this product."""
    once, twice = model(5, 4, 33, 0), model(5, 4, 33, 0)
    act = replace(twice.network.layers[1], rounding="twice")
    twice = Model(replace(twice.network, name="twice", layers=(twice.network.layers[0], act)), dict(twice.arrays))
    (with_it,), (without,) = (size_memories("d", models, INTEGER).npus for models in ([once, twice], [once]))
    assert (with_it.results.round_twice, without.results.round_twice) == (1, 0)
    rows = [npu_rows(plan(m, [with_it]))[0] for m in (once, twice)]
    assert [layer.row("results")["round_twice"] for layer in rows] == [0, 1]
    scales = [layer.memories["scales"] for layer in rows]
    assert [(columns["multiplier_0"][0], columns["shift_0"][0]) for columns in scales] == [(1, 31), (4, 33)]
    small = Manifest.of(Design(name="d", npus=(without,)), "0" * 64)
    with value_error("twice: multiplier_bits must be >= 3, design d has 0; round_twice must be >= 1, design d has 0"):
        compile_model(twice, small)
    with value_error("twice: round_twice must be >= 1, design d has 0"):
        compile_model(twice, Manifest.of(Design(name="d", npus=(with_it.changed(round_twice=0),)), "0" * 64))
    wide = replace(act, fraction=2)
    wide = Model(replace(twice.network, layers=(twice.network.layers[0], wide)), dict(twice.arrays))
    with value_error("r: fraction must be 0 with rounding twice on the integer engine, got 2"):
        size_memories("d", [wide], INTEGER)


@pytest.mark.parametrize("fractions", [(2, 7), (7, 2)])
def test_layers_of_a_network_may_differ(fractions: tuple[int, int]) -> None:
    """Hardware has the larger one for both; what it is loaded with gives the same results."""
    layers = list[Layer]()
    arrays = {}
    for name, fraction in zip("ab", fractions):
        layers.append(Dense(name=name, out_channels=3, weight=signed(4)))
        layers.append(Requantise(name=f"r_{name}", encoding=signed(4), fraction=fraction))
        arrays[name] = {"weight": np.arange(-4, 5).reshape(3, 1, 1, 3)}
        scale = {"bias": [-5, 3, 1], "multiplier": [3, 5, 1], "shift": [6, 7, 5]}
        arrays[f"r_{name}"] = {what: np.array(values) for what, values in scale.items()}
    network = Network(name="two", input=Map(height=1, width=1, channels=3, encoding=signed(4)), layers=tuple(layers))
    (npu,) = size_memories("d", [Model(network, arrays)], INTEGER).npus
    assert npu.results.bias_fraction_bits == 7
    rows = npu_rows(plan(Model(network, arrays), [npu]))
    biases = [layer.memories["scales"]["bias_0"].tolist() for layer in rows]
    assert biases == [[b << 7 - fraction for b in (-5, 3, 1)] for fraction in fractions]


@pytest.mark.parametrize(("name", "need", "has"), [("multiplier_bits", 31, 30), ("bias_fraction_bits", 9, 8)])
def test_a_design_without_room_is_refused(name: str, need: int, has: int) -> None:
    (npu,) = size_memories("d", MODELS, INTEGER).npus
    small = Manifest.of(Design(name="d", npus=(npu.changed(**{name: has}),)), "0" * 64)
    wrong = next(one for one in MODELS if one.network.name == {"multiplier_bits": "f1"}.get(name, "f9"))
    with value_error(f"{wrong.network.name}: {name} must be >= {need}, design d has {has}"):
        compile_model(wrong, small)
