"""The sequencer's side of weights that come down the stream (hls_gen/rtl/shell/loader/weights.py).

    layer at hand is streamed, its first tap --> weights_there? --> held | step, weights_begun
    last beat of a streamed layer            --> weights_done

A layer's first tap waits until the layer's weights are in the kernel memory. The loader counts what was begun and done,
so that it doesn't overwrite weights in use.
"""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of

from .layers import Layers
from .tap import Tap


@dataclass(frozen=True)
class WeightsGate:
    """What the tap at hand waits for.

    Attributes
    ----------
    held : Signal
        The tap at hand is the first of a streamed layer whose weights are not there.
    streamed : Signal
        The weights of the tap's layer come down the stream.
    """

    held: Signal
    streamed: Signal


def weights_gate(b: Block, layers: Layers) -> WeightsGate:
    """The tap source's side, in ``b``: it has ports ``weights_there`` and ``weights_begun``."""
    streamed = layers.now.kernel.kernel_stream
    first = b.reg("first_of_layer")
    b.on(layers.step, (first, 0))
    b.on(layers.begin, (first, 1))
    opens = b.wire("opens_weights", 1, first & streamed)
    held = b.wire("held_for_weights", 1, opens & ~b.input("weights_there"))
    b.output("weights_begun", 1, layers.step & opens)
    return WeightsGate(held, streamed)


def weights_done(b: Block, tap: Tap, ends: Signal, busy: Signal, waiting: Signal) -> Signal:
    """The issuer's side, in ``b``: it has ports ``weights_done`` and ``wait_weights``.

    Parameters
    ----------
    b : Block
        The issuer.
    tap : Tap
        The tap at hand.
    ends : Signal
        1 with the last beat of a layer, or the cycle of a skip in its place.
    busy : Signal
        A tap is being turned into beats.
    waiting : Signal
        It is one with beats.

    Returns
    -------
    Signal
        No tap is ready, and not because of weights.
    """
    streamed = b.reg("at_streamed")
    b.on(tap.step, (streamed, tap.streamed))
    b.output("weights_done", 1, ends & streamed)
    held = b.wire("waits_for_weights", 1, all_of(tap.valid, ~busy, tap.held))
    b.output("wait_weights", 1, held)
    return ~any_of(waiting, held)
