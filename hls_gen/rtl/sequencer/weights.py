"""The tap source's side of weights that come down the stream (hls_gen/rtl/loader/weights.py).

    a streamed layer's first tap --> weights_there? --no--> the tap waits
                                              `-----yes---> weights_begun as it is taken

The loader counts what was begun and done, so that it doesn't overwrite weights in use.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bitloom.hls_gen.rtl.primitives.block import Block, Signal

from .bundle import Bundle, Meaning
from .layers import Layers


@dataclass(frozen=True, kw_only=True)
class WeightsBegun(Bundle):
    """Ports between the loader and a sequencer with ``stream_weights``; others have none of them."""

    prefix: ClassVar[str] = "weights_"

    there: Annotated[
        Signal | None,
        Meaning(
            "a streamed layer that has not begun is whole in the kernel memory",
            lambda s: s.layer_bits("kernel_stream"),
            back=True,
        ),
    ] = None
    begun: Annotated[Signal | None, Meaning("a streamed layer begins", lambda s: s.layer_bits("kernel_stream"))] = None


def weights_missing(b: Block, layers: Layers, taken: Signal, weights: WeightsBegun) -> Signal:
    """1 where the tap at hand is the first of a streamed layer whose weights are not there; drives ``weights.begun``.

    Parameters
    ----------
    layers : Layers
        The layer at hand.
    taken : Signal
        The issuer takes the tap at hand.
    weights : WeightsBegun
        The tap source's ports.
    """
    first = b.reg("first_of_layer")  # the tap at hand is its layer's first
    b.on(taken, (first, 0))
    b.on(layers.begin, (first, 1))
    opens = b.wire("opens_weights", 1, first & layers.now.kernel.kernel_stream)
    weights.assign(begun=taken & opens)
    return opens & ~weights.there
