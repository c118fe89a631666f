"""What random networks are made of: generators that leave something out would attack nothing there."""

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.layers.requantise import Requantise
from bitloom.hls_gen.design import flat
from bitloom.overlay.fuzz.campaigns.networks import DESIGNS
from bitloom.overlay.fuzz.designs import SINGLE
from bitloom.overlay.fuzz.pick import SeededPick
from bitloom.overlay.fuzz.random_models import random_integer_model
from bitloom.overlay.fuzz.random_networks import IntegerChoices, integer_network, most_planes


def test_integer_networks_have_what_frameworks_have() -> None:
    """Limits of their own, bits behind the point, all roundings, 9-bit maps, images of 0..255, wide multipliers."""
    npu = SINGLE["int_wide"].npus[0]
    models = []
    for k in range(60):
        pick = SeededPick("frameworks", k)
        network = integer_network(pick, IntegerChoices.of(npu))
        models.append(random_integer_model(network, k, npu.array.acc_bits, npu.results.multiplier_bits))
    acts = [(m, layer) for m in models for layer in m.network.layers if isinstance(layer, Requantise)]
    assert {layer.clip is None for _, layer in acts} == {True, False}
    assert {layer.rounding for _, layer in acts} == {"once", "even", "twice"}
    assert {0, 1, 16} <= {layer.fraction for _, layer in acts}
    assert {signed(9), unsigned(8)} <= {layer.encoding for _, layer in acts}
    assert {signed(9), unsigned(8)} <= {m.network.input.encoding for m in models}
    once = [m.arrays[layer.name]["multiplier"] for m, layer in acts if layer.rounding == "once"]
    widths = {int(multiplier).bit_length() for multipliers in once for multiplier in multipliers}
    assert {16, 31} <= widths
    rests = [m.arrays[layer.name]["bias"] % (1 << layer.fraction) for m, layer in acts if layer.fraction]
    assert all(rest.any() for rest in rests if len(rest) > 20)


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
