"""The networks of MLPerf Tiny: their sizes are those of the benchmark, and of its files where these are."""

import pytest

from bitloom.golden.file import model_digest
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.zoo import data_folder
from bitloom.golden.zoo.mlperf_tiny import FILES, NETWORKS, seeded

MULTIPLICATIONS = {
    "ic": (11_574_592, 0, 77_360),
    "kws": (2_319_488, 242_944, 22_016),
    "vww": (6_684_440, 715_024, 208_112),
    "ad": (264_192, 0, 264_192),
    "sww": (786_528, 39_840, 46_040),
}
"""Multiplications on valid taps, those of depthwise convolutions, and weights of a network."""
DIGESTS = {
    "ic": "e5a86243a5716040",
    "kws": "ac2b2465d88e1843",
    "vww": "2f3ffd670a7af92c",
    "ad": "6a6c2c7b1990819e",
    "sww": "1bf34d0b8ce7ebcb",
}
"""Beginnings of the digests of the networks with seeded weights."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NETWORKS)
def test_seeded_weights_are_the_same_everywhere(name):
    assert model_digest(seeded(NETWORKS[name]())).startswith(DIGESTS[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_sizes(name):
    network = NETWORKS[name]()
    counts = [0, 0, 0]
    for layer in network.layers:
        if isinstance(layer, Weighted):
            (source,) = network.sources(layer)
            positions = layer.window(source).positions(source.height, source.width)
            alone = isinstance(layer, DepthwiseConv)
            each = layer.out_channels * (1 if alone else source.channels)
            counts[alone] += int((positions >= 0).sum()) * each
            counts[2] += layer.window(source).taps * each
    assert tuple(counts) == MULTIPLICATIONS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_topology_is_that_of_the_file(name):
    """Maps and windows, layer by layer, of the network that the reference model is imported as."""
    path = data_folder() / FILES[name]
    if not path.exists():
        pytest.skip(f"{path.name} is not in the data folder")
    pytest.importorskip("tflite")
    from bitloom.overlay.importers.imported import import_file

    def shape(network):
        layers = [layer for layer in network.layers if isinstance(layer, Weighted)]
        windows = [layer.window(network.sources(layer)[0]) for layer in layers]
        return [(w, layer.out_channels) for w, layer in zip(windows, layers)], [layer.kind for layer in network.layers]

    assert shape(NETWORKS[name]()) == shape(import_file(path).model.network)
