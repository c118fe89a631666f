"""The picture of a network's graph: boxes, arrows and texts, none of which covers another."""

import re

from bitloom.golden import zoo
from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network
from bitloom.overlay.show.report import graph


def residual() -> Network:
    """Two sums over what passes layers, one inside the other."""
    weighted = {"out_channels": 2, "kernel": (1, 1), "weight": signed(3)}
    feature = {"encoding": signed(8)}
    layers = (
        Conv(name="stem", **weighted),
        Requantise(name="stem_q", **feature),
        Conv(name="deep", **weighted),
        Requantise(name="deep_q", **feature),
        Add(name="sum_1", inputs=("stem_q", "deep_q"), **feature),
        Add(name="sum_2", inputs=("stem_q", "sum_1"), **feature),
        Dense(name="a_very_long_name_of_a_layer", out_channels=3, weight=signed(3)),
    )
    return Network(name="residual", input=Map(height=5, width=4, channels=2, encoding=signed(8)), layers=layers)


def test_tracks() -> None:
    assert graph.tracks_of([]) == []
    assert graph.tracks_of([(0, 3), (3, 6), (4, 6), (7, 9)]) == [0, 1, 0, 0]  # arrows that touch are apart
    assert graph.tracks_of([(1, 9), (2, 4)]) == [1, 0]


def test_a_chain() -> None:
    network = zoo.load("digits-cnn").network
    text = graph.picture(network)
    assert text.count("<rect") == 1 + len(network.layers)
    assert text.count('class="edge"') == len(network.layers)
    assert re.findall(r"<title>(.+?)</title>", text) == ["input", *(layer.name for layer in network.layers)]
    assert "8 \N{MULTIPLICATION SIGN} 8 \N{MULTIPLICATION SIGN} 16" in text


def test_maps_that_pass_layers_have_arrows_on_the_right() -> None:
    text = graph.picture(residual())
    right = graph.LEFT + graph.BOX_WIDTH
    around = re.findall(rf'd="M{right} (\d+)H(\d+)V(\d+)H{right}"', text)
    assert sorted((int(x) - right) // graph.TRACK for _, x, _ in around) == [1, 2]
    down = re.findall(r'd="M\d+ \d+v\d+"', text)
    assert len(down) + len(around) == 9  # one for each map that a layer reads
    assert ">a_very_long_name_\N{HORIZONTAL ELLIPSIS}</text>" in text
