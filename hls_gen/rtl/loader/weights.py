"""Weights larger than the device: kernel rows that come down the stream while frames are computed (spec B10, B18).

    loader --rows--> kernel memory                      layer:   i    i+1   i+2      (kernel memories a and b)
       ^  \\--a layer is whole--> sequencer begins it     rows:    a     b     a
       `------a layer is done---- sequencer             written:       i+2 as soon as i is done

Layers are used in the order in which they come, so two counts for each NPU say all: how many layers are in its memory
or begun and not yet done (``unfinished``: the loader looks at it before it writes the next), and how many of these
have not begun (``waiting``: the sequencer looks at it before a layer's first beat). Where rows lie, and how many layers
may be unfinished when a layer is written (a packet's ``ahead``), is the compiler's business
(hls_gen/compiler/streamed_weights.py). The sequencer's side is hls_gen/rtl/sequencer/weights.py.

A row of the last beat is read at the end of its cycle; a packet that waited for it writes 3 cycles later at the
earliest. A layer's last row is written at the end of the cycle in which it is counted; its first beat comes 2 cycles
later at the earliest.
"""

from bitloom.hls_gen.design.headers import MOST_AHEAD
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Signal, add, all_of, any_of, nonzero, resize, sub

from .header import HeaderWords
from .judge import Judgement
from .load import AddressedMemory, LoadedWord, RowCursor
from .state import LoaderContext

COUNT_BITS_OF_LAYERS = bits_for(MOST_AHEAD + 1)
"""Width of the counts: those that a packet's ``ahead`` allows to be unfinished, and the layer that is written."""


def last_row_of_layer(header: HeaderWords, target: AddressedMemory, cursor: RowCursor, word: LoadedWord) -> Signal:
    """Whether the word taken in this cycle completes a streamed layer's weights."""
    return all_of(word.taken, word.row_ends, cursor.is_last, target.is_weights, header.last)


def accept_weights(
    c: LoaderContext, header: HeaderWords, judgement: Judgement, target: AddressedMemory, whole: Signal, restart: Signal
) -> Signal:
    """Counts streamed layers, and lets packets of weights begin by the counts.

    Parameters
    ----------
    c : LoaderContext
        The loader; it gets the ports of ``weights_ports`` for each NPU.
    header : HeaderWords
        The packet at hand.
    judgement : Judgement
        Judgement of the header.
    target : AddressedMemory
        Whether it is WEIGHTS.
    whole : Signal
        The word taken in this cycle is the last one of a layer's weights.
    restart : Signal
        The engine begins anew: what was streamed is forgotten.

    Returns
    -------
    Signal
        Pulse: the packet at hand is WEIGHTS and begins.
    """
    b = c.b
    b.comment("Streamed layers: not yet done, and of these not yet begun.")
    rooms = []
    for n, names in enumerate(weights_ports(len(c.design.npus))):
        of_npu = target.of_npu[n : n + 1]
        before = f"npu{n}_" * bool(of_npu)
        begun = b.input(names["weights_begun"])
        done = b.input(names["weights_done"])
        layer_whole = b.reg(f"{before}layer_whole")  # a cycle later, when the row is on its way to the memory
        b.on(None, (layer_whole, all_of(whole, *of_npu)))
        unfinished = b.reg(f"{before}unfinished_layers", COUNT_BITS_OF_LAYERS)
        waiting = b.reg(f"{before}waiting_layers", COUNT_BITS_OF_LAYERS)
        for count, down in ((unfinished, done), (waiting, begun)):
            b.on(layer_whole & ~down, (count, add(count, 1, COUNT_BITS_OF_LAYERS)))
            b.on(~layer_whole & down, (count, sub(count, 1, COUNT_BITS_OF_LAYERS)))
            b.on(restart, (count, 0))
        b.output(names["weights_there"], 1, nonzero(waiting))
        rooms.append(all_of(unfinished <= resize(header.memory, COUNT_BITS_OF_LAYERS), *of_npu))
    room = b.wire("weights_room", 1, any_of(*rooms))
    return b.wire("accept_weights", 1, all_of(c.at["JUDGE"], judgement.passed, target.is_weights, room))


def weights_ports(npus: int) -> list[dict[str, str]]:
    """For each NPU of a design of so many, the loader's ports by the names that they have at the NPU."""
    names = ("weights_there", "weights_begun", "weights_done")
    if npus == 1:
        return [{name: name for name in names}]
    return [{name: f"npu{n}_{name}" for name in names} for n in range(npus)]
