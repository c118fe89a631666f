"""Prices between others: what is over its limit costs more from time to time."""

from dataclasses import replace

from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.task import STEPS, between, raised


def test_what_is_over_its_limit_costs_its_first_price_and_then_twice_as_much() -> None:
    once = raised(Price(), ["bram36"])
    assert once == replace(Price(), bram36=STEPS["bram36"])
    assert raised(once, ["bram36", "dsp"]) == replace(Price(), bram36=2 * STEPS["bram36"], dsp=STEPS["dsp"])


def test_a_price_between_two_is_midway_and_has_the_npus_of_the_higher_one() -> None:
    low, high = Price(npu=-900, bram36=30, dsp=20), Price(npu=-100, bram36=60, lanes=1, dsp=20)
    assert between(low, high) == Price(npu=-100, bram36=45, lanes=0.5, dsp=20)
