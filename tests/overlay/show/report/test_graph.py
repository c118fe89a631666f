"""The picture of a network's graph: boxes, arrows and texts, none of which covers another."""

import re

from bitloom.golden import zoo
from bitloom.golden.network import Network
from bitloom.overlay.show.report import graph
from tests.graph_text import network_of


def residual() -> Network:
    """Two sums over what passes layers, one inside the other."""
    stem = "conv stem 2 1x1 s3, requantise stem_q s8, conv deep 2 1x1 s3, requantise deep_q s8"
    sums = "add sum_1 stem_q deep_q s8, add sum_2 stem_q sum_1 s8"
    return network_of("5x4x2 s8", stem, sums, "dense a_very_long_name_of_a_layer 3 s3", name="residual")


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
