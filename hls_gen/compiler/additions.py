"""Which of an addition's two maps passes through the results unit, and which one waits in the skip store
(docs/decisions/0014).

    conv, requantise --kept--> add
    skip store ------added-----^
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network


@dataclass(frozen=True)
class Kept:
    """The two maps of an addition.

    Attributes
    ----------
    kept : str
        The map that no other layer reads: a requantisation makes it, behind which the addition stands.
    added : str
        The other one.
    """

    kept: str
    added: str


def kept_maps(network: Network) -> Mapping[str, Kept]:
    """Choose for each addition the map that it follows: of two that are possible the one with more weighted layers
    before it, so that the shorter way's map is the one that waits.

    Parameters
    ----------
    network : Network

    Returns
    -------
    mapping of str to Kept
        By the addition's name.

    Raises
    ------
    ValueError
        If neither map of an addition is made by a requantisation for it alone.
    """
    requantised = {layer.name for layer in network.layers if isinstance(layer, Requantise)}
    depth, found = {INPUT: 0}, dict[str, Kept]()  # depth: weighted layers on the longest way to a map
    for layer in network.layers:
        names = network.reads[layer.name]
        depth[layer.name] = max(depth[name] for name in names) + isinstance(layer, Weighted)
        if isinstance(layer, Add):
            possible = [name for name in names if network.readers[name] == (layer.name,) and name in requantised]
            if not possible:
                raise ValueError(
                    f"{layer.name}: a requantise must make one of its maps for it alone, got {' and '.join(names)}"
                )
            kept = deepest(possible, depth)
            found[layer.name] = Kept(kept, names[names[0] == kept])
    return found


def deepest(names: Sequence[str], depth: Mapping[str, int]) -> str:
    """Of some maps the one with the most weighted layers before it; of those the one that comes last in ``depth``."""
    order = {name: number for number, name in enumerate(depth)}
    return max(names, key=lambda name: (depth[name], order[name]))
