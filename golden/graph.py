"""Networks as graphs: which layer reads which map, and in what order layers can be computed.

    @input --> conv_1 --> threshold_1 --+--> conv_2 --> add --> ...
                                        `---------------^

A map has the name of the layer that makes it; the network's input is `INPUT`. What stands here works on names alone.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

INPUT = "@input"
"""Name of the network's input map. No layer can have it: names of layers are lower_snake_case."""

Reads = Mapping[str, Sequence[str]]
"""Layer name -> names of the maps that the layer reads."""

Value = TypeVar("Value")


def ordered(network: str, reads: Reads) -> list[str]:
    """Sort layers so that each stands behind all layers whose maps it reads.

    Of several layers that could come next, the one that is listed first does. So a list that is in such an order
    already stays as it is.

    Parameters
    ----------
    network : str
        Name of the network, for messages.
    reads : mapping of str to sequence of str
        The maps that each layer reads, in the order in which the layers are listed.

    Returns
    -------
    list of str
        The layers' names, sorted.

    Raises
    ------
    ValueError
        If a layer reads a map that doesn't exist, or if layers read each other in a circle.
    """
    for layer, names in reads.items():
        for name in names:
            if name != INPUT and name not in reads:
                raise ValueError(f"{layer}: inputs must be layers of {network} or {INPUT}, got {name!r}")
    order: list[str] = []
    done = {INPUT}
    left = list(reads)
    while left:
        following = next((name for name in left if done.issuperset(reads[name])), None)
        if following is None:
            raise ValueError(f"{network}: layers must not read each other in a circle, got {_circle(left, reads)}")
        left.remove(following)
        order.append(following)
        done.add(following)
    return order


def _circle(stuck: Sequence[str], reads: Reads) -> str:
    """A circle among layers that wait for each other, from maker to reader: ``a -> b -> a``."""
    circle = [stuck[0]]
    while circle[-1] not in circle[:-1]:
        circle.append(next(name for name in reads[circle[-1]] if name in stuck))
    return " -> ".join(reversed(circle[circle.index(circle[-1]) :]))


def readers(network: str, reads: Reads) -> dict[str, tuple[str, ...]]:
    """The layers that read each map: the reverse of ``reads``.

    Parameters
    ----------
    network : str
        Name of the network, for messages.
    reads : mapping of str to sequence of str
        The maps that each layer reads.

    Returns
    -------
    dict of str to tuple of str
        Map name -> names of its readers, as ``reads`` lists them. A layer that reads a map twice stands there twice.
        The output map has no reader.

    Raises
    ------
    ValueError
        Unless exactly one map has no reader.
    """
    layers: dict[str, list[str]] = {name: [] for name in (INPUT, *reads)}
    for layer, names in reads.items():
        for name in names:
            layers[name].append(layer)
    unread = [name for name, names in layers.items() if not names]
    if len(unread) != 1:
        raise ValueError(
            f"{network}: one layer must make the output and every other map be read, got no reader of "
            f"{', '.join(unread)}"
        )
    return {name: tuple(names) for name, names in layers.items()}


def walk(
    reads: Reads, sources: Mapping[str, Value], compute: Callable[[str, list[Value]], Value]
) -> Iterator[tuple[str, Value]]:
    """Compute something for every layer from what was computed for the maps that the layer reads.

    A map's value is held no longer than until its last reader is done.

    Parameters
    ----------
    reads : mapping of str to sequence of str
        The maps that each layer reads; layers in an order of `ordered`.
    sources : mapping of str to object
        The values of the maps that no layer makes: of a network, of `INPUT`.
    compute : callable
        ``compute(layer, values)`` gives the layer's value; ``values`` are those of the maps that it reads.

    Yields
    ------
    tuple of str and object
        Each layer and its value.
    """
    left = Counter(name for names in reads.values() for name in names)
    held = dict(sources)
    del sources  # else the values would be held until the end
    for layer, names in reads.items():
        held[layer] = compute(layer, [held[name] for name in names])
        left.subtract(names)
        for name in names:
            if not left[name]:
                held.pop(name, None)  # a layer may read a map twice
        yield layer, held[layer]


def final(values: Iterator[Value]) -> Value:
    """The last value: the network's output, as the last layer makes it. Those before it are not held."""
    return deque(values, maxlen=1).pop()
