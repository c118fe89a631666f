"""Parts of random networks: generators that leave something out would attack nothing there."""

from bitloom.hls_gen.design import flat
from bitloom.overlay.fuzz.campaigns.networks import DESIGNS
from bitloom.overlay.fuzz.designs import SINGLE
from bitloom.overlay.fuzz.random_networks import most_planes


def test_integer_inputs_of_the_binary_engine_have_9_planes() -> None:
    assert {most_planes(SINGLE[name].npus[0]) for name in ("one_lane", "k8_g8_planes", "k48_g17")} == {7, 9}


LEFT_OUT = {"joined_words", "skip_bits", "skips_onward", "map_products"}
"""Capacities of no design: they are for additions, products and concatenations of maps, and no network of the campaign
joins maps. Tests draw graphs (tests/overlay/build/board_cases.py)."""


def test_designs_have_room_for_everything() -> None:
    """Some design has each capacity, and as much of it as there can be: what no design has, is never attacked."""
    npus = [npu for design in DESIGNS.values() for npu in design.npus]
    most = {name: max(npu.value(name) for npu in npus) for name in flat.CAPACITIES}
    assert {name for name, value in most.items() if value < (flat.NUMBERS[name].most or 1)} == LEFT_OUT
