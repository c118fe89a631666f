"""Lookups against onnxruntime's Gather; what is refused."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed, unsigned
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error

from .agreement import by_onnxruntime, check_model

ENCODINGS = [*(signed(bits) for bits in range(1, 10)), *(unsigned(bits) for bits in range(1, 9))]
"""Of maps that are looked up."""


def model(source: Encoding, target: Encoding, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    network = Network(name="net", input=case_map(3, 5, 7, source), layers=(Lookup(name="table", encoding=target),))
    return Model(network, {"table": {"entries": random_values((256,), target, rng)}})


@pytest.mark.parametrize("source", ENCODINGS, ids=str)
def test_equals_gather(source, tmp_path):
    """The low 8 bits of a value in two's complement are the number of its entry."""
    table = model(source, signed(9), source.bits)
    x = random_values((4, 3, 5, 7), source, np.random.default_rng(1))
    numbers = x.astype(np.int16).astype(np.uint8).astype(np.int64)
    entries = table.arrays["table"]["entries"].astype(np.int64)
    wanted = by_onnxruntime(("Gather", ["entries", "numbers"], ["y"], {}), entries=entries, numbers=numbers)
    check_model(table, x, wanted, tmp_path)


def test_a_value_has_the_entry_of_its_low_bits():
    table = model(signed(9), unsigned(8), 3)
    entries = table.arrays["table"]["entries"]
    x = np.array([-256, -255, -1, 0, 1, 255] + [0] * 99).reshape(1, 3, 5, 7)
    assert table.forward(x).ravel()[:6].tolist() == entries[[0, 1, 255, 0, 1, 255]].tolist()


@pytest.mark.parametrize("source", [BIPOLAR, TERNARY, signed(10), unsigned(9)], ids=str)
def test_what_is_looked_up_has_few_bits(source):
    rule = "table: a lookup must read signed 1..9 bit or unsigned 1..8 bit"
    with value_error(f"{rule}, got {source}"):
        model(source, signed(8), 1)


def test_an_encoding_of_features():
    with value_error("table: encoding must be signed 2..9 bit or unsigned 1..8 bit, got signed 10 bit (-512..511)"):
        Lookup(name="table", encoding=signed(10))


def test_entries_are_of_the_encoding():
    network = model(signed(8), unsigned(4), 1).network
    with value_error("table.entries: values must be 0..15, got 16"):
        Model(network, {"table": {"entries": np.arange(256) % 17}})
    with value_error("table.entries: shape must be (256,), got (255,)"):
        Model(network, {"table": {"entries": np.zeros(255, int)}})
