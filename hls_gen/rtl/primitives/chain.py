"""One module behind another on a ready/valid stream.

source --> in | module | out --> what is returned
"""

from collections.abc import Sequence

from .block import Block, Signal, const
from .stream import Stream


def chain(b: Block, block: Block, name: str, source: Stream, unused: Sequence[str] = (), **fixed: Signal) -> Stream:
    """Instance of a module with streams ``in`` and ``out``, such as a gearbox, behind ``source``.

    Parameters
    ----------
    block : Block
        Module of the instance. All of its ports that are not in ``fixed`` are those of the two streams.
    name : str
        Name of the instance, with which the names of the wires of its output begin.
    source : Stream
        Where its words come from; parts for which it has no port are not looked at. Without side bits, those of an
        instance are 0 and come out unused.
    unused : sequence of str
        Parts of the output that nobody will look at: the names of their wires end in ``_unused``.
    fixed : Signal
        Signals for its other ports, ``rst`` among them.

    Returns
    -------
    Stream
        Stream that comes out.
    """
    unused = unused if source.side is not None else (*unused, "side")
    out = {}
    ports = dict(fixed)
    for port, bits in block.port_widths.items():
        part = port.removeprefix("out_")
        if port == "in_side" and source.side is None:
            ports[port] = const(0, bits)
        elif port.startswith("in_") and port not in ports:
            ports[port] = getattr(source, port.removeprefix("in_"))
        elif port != part:
            wire = f"{name}_{part}_unused" if part in unused else f"{name}_{part}"
            out[part] = ports[port] = b.wire(wire, bits)
    b.instance(block, name, **ports)
    words = Stream(**out)
    return words if source.side is not None else words.replace(side=None)
