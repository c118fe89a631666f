"""Number of the layer that comes next, round and round: every stage of an NPU keeps one for itself.

    advance --> 0, 1, ..., last_layer, 0, ...

Stages work on different layers at the same time, so a number that all of them share would not do.
"""

from bitloom.hls_gen.design.widths import LAYER_BITS

from .block import Block, Signal, add, choose, eq


def layer_counter(b: Block, name: str, last_layer: Signal, advance: Signal) -> Signal:
    """Counter of layers inside ``b``.

    Parameters
    ----------
    name : str
        Name of the register.
    last_layer : Signal
        Number of the network's last layer; LAYER_BITS wide.
    advance : Signal
        1 in cycles in which the stage takes up the layer that the register names.

    Returns
    -------
    Signal
        The register, LAYER_BITS wide: number of the layer that the stage takes up next, 0 after reset.
    """
    upcoming = b.reg(name, LAYER_BITS)
    following = choose(eq(upcoming, last_layer), 0, add(upcoming, 1, LAYER_BITS), LAYER_BITS)
    b.on(advance, (upcoming, following))
    return upcoming
