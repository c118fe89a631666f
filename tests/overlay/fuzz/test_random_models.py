"""Random models: what comes out depends on the image, so that a fault in any layer can be seen."""

from collections.abc import Callable

import pytest

from bitloom.golden.kernels import packed
from bitloom.golden.network import Network
from bitloom.overlay.build.images import random_images
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import binary_network, deep_network, depthwise_network, integer_network
from tests.networks import BYTES, few_and_many
from tests.random_networks.blocks import residual_network
from tests.random_networks.graphs import graph_network

NETWORKS: dict[str, Callable[[Pick], Network]] = {
    "binary": binary_network,
    "binary, deep": lambda pick: deep_network(pick, "binary", 6),
    "integer": lambda pick: integer_network(pick, BYTES),
    "integer, deep": lambda pick: deep_network(pick, "integer", 6),
    "depthwise": lambda pick: depthwise_network(pick, BYTES),
    "residual": lambda pick: residual_network(pick, BYTES),
    "graph": lambda pick: graph_network(pick, BYTES),
}


@few_and_many(10, 30)
@pytest.mark.parametrize("kind", NETWORKS)
def test_outputs_depend_on_the_image(kind: str, count: int) -> None:
    """Of most networks; some keep a constant on purpose, as where all values saturate."""
    depend = 0
    for seed in range(count):
        network = NETWORKS[kind](Pick(seed))
        outputs = packed.forward(random_model(network, seed, 32, 31), random_images(network, 3, seed + 100))
        depend += bool((outputs != outputs[:1]).any())
    assert depend >= 2 * count // 3
