"""Ready/valid streams: the one interface between modules, and the three ways to join two or more of them.

    connect     source --> sink
    fork        source --+--> sink 0        every word is taken by every sink, each in its own time
                         `--> sink 1
    join        source 0 --+--> sink        one word of each source, side by side, taken together
                source 1 --'

A word crosses from a source to a sink at the clock edge that ends a cycle in which ``valid`` and ``ready`` are both 1.
The rules are those of Amaranth's RFC 61, and hls_gen/check and tests/hls_gen/rtl/test_stream.py hold every module to
them:

- ``valid`` never waits for ``ready``: no combinational path leads from a stream's ready to its valid.
- Once ``valid`` is 1 it stays 1, and data, last and side stay as they are, until the word is taken.
- ``ready`` may look at ``valid``, and may rise and fall freely while no word is offered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .block import Block, Signal, all_of, any_of, side_by_side, width

PARTS = ("valid", "ready", "data", "last", "side")
"""Parts of a stream, in the order in which ports are made; a port is called ``<stream>_<part>``."""


@dataclass(frozen=True)
class Stream:
    """The signals of one ready/valid stream, as seen inside the block that they belong to."""

    valid: Signal
    """1 bit, driven by the source: a word is offered."""
    ready: Signal
    """1 bit, driven by the sink: an offered word is taken in this cycle."""
    data: Signal
    """The word, driven by the source; any width."""
    last: Signal | None = None
    """1 bit, driven by the source: the word is the last of its packet, tuple or map. None where the stream doesn't
    say."""
    side: Signal | None = None
    """Further bits that travel with the word, driven by the source. None where there are none."""

    @classmethod
    def input(cls, b: Block, name: str, data_bits: int, *, last: bool = False, side_bits: int = 0) -> "Stream":
        """Ports ``name_*`` by which ``b`` takes words: ready is an output, all else are inputs.

        Parameters
        ----------
        b : Block
            Block that gets the ports.
        name : str
            Beginning of the ports' names.
        data_bits : int
            Width of a word, at least 1.
        last : bool
            Whether there is a port ``name_last``.
        side_bits : int
            Width of ``name_side``; 0 for no such port.

        Returns
        -------
        Stream
            The ports; ``b`` has to assign ``ready``.
        """
        return cls(
            valid=b.input(f"{name}_valid"),
            ready=b.output(f"{name}_ready"),
            data=b.input(f"{name}_data", data_bits),
            last=b.input(f"{name}_last") if last else None,
            side=b.input(f"{name}_side", side_bits) if side_bits else None,
        )

    @classmethod
    def output(cls, b: Block, name: str, data_bits: int, *, last: bool = False, side_bits: int = 0) -> "Stream":
        """Ports ``name_*`` by which ``b`` gives words: ready is an input, all else are outputs for ``b`` to assign.

        Parameters and result are those of `Stream.input`. A module whose outputs are registers makes a Stream of them
        itself: ``Stream(b.output_reg("out_valid"), b.input("out_ready"), b.output_reg("out_data", 8, init=None))``.
        """
        return cls(
            valid=b.output(f"{name}_valid"),
            ready=b.input(f"{name}_ready"),
            data=b.output(f"{name}_data", data_bits),
            last=b.output(f"{name}_last") if last else None,
            side=b.output(f"{name}_side", side_bits) if side_bits else None,
        )

    @classmethod
    def output_of(cls, b: Block, name: str, block: Block) -> "Stream | None":
        """Ports ``name_*`` of ``b`` as those by which an instance of ``block`` gives words; None where it gives none.
        Result and assignments are as of `Stream.output`."""
        widths = block.port_widths
        if f"{name}_data" not in widths:
            return None
        side_bits = widths.get(f"{name}_side", 0)
        return cls.output(b, name, widths[f"{name}_data"], last=f"{name}_last" in widths, side_bits=side_bits)

    @classmethod
    def wires(cls, b: Block, name: str, data_bits: int, *, last: bool = False, side_bits: int = 0) -> "Stream":
        """Wires ``name_*`` between two instances in ``b``; parameters and result are those of `Stream.input`."""
        return cls(
            valid=b.wire(f"{name}_valid"),
            ready=b.wire(f"{name}_ready"),
            data=b.wire(f"{name}_data", data_bits),
            last=b.wire(f"{name}_last") if last else None,
            side=b.wire(f"{name}_side", side_bits) if side_bits else None,
        )

    @classmethod
    def of(cls, ports: Mapping[str, Signal], name: str) -> "Stream":
        """The stream whose parts are called ``name_*`` in a port map.

        Parameters
        ----------
        ports : mapping of str to Signal
            Signals at the ports of an instance, by port.
        name : str
            Beginning of the names of the stream's ports.

        Returns
        -------
        Stream
            Without ``last`` or ``side`` where the instance has no such port.
        """
        return cls(**{part: ports[f"{name}_{part}"] for part in PARTS if f"{name}_{part}" in ports})

    @property
    def data_bits(self) -> int:
        """Width of a word."""
        return width(self.data)

    @property
    def side_bits(self) -> int:
        """Width of the side bits, 0 where there are none."""
        return 0 if self.side is None else width(self.side)

    @property
    def taken(self) -> Signal:
        """Expression that is 1 in the cycle in which a word crosses."""
        return self.valid & self.ready

    def parts(self) -> Iterator[tuple[str, Signal]]:
        """(name, signal) of each part that the stream has, in the order of `PARTS`."""
        for name in PARTS:
            signal = getattr(self, name)
            if signal is not None:
                yield name, signal

    def ports(self, name: str) -> dict[str, Signal]:
        """Port map of an instance whose ports ``name_*`` are this stream."""
        return {f"{name}_{part}": signal for part, signal in self.parts()}

    def replace(self, **parts: Any) -> "Stream":
        """This stream with other signals for some of its parts; None leaves out ``last`` or ``side``."""
        return replace(self, **parts)


def connect(source: Stream, sink: Stream) -> None:
    """Give the words of ``source`` to ``sink``. Wires alone: latency 0, one word a cycle, no register.

    Parameters
    ----------
    source : Stream
        Where words come from; its ready is assigned.
    sink : Stream
        Where they go; all but its ready is assigned. It may leave out ``last`` or ``side`` that the source has.

    Raises
    ------
    ValueError
        If the sink has a part that the source lacks, or one of another width.
    """
    _check("connect", source, sink)
    sink.valid.assign(source.valid)
    _give_word(source, sink)
    source.ready.assign(sink.ready)


def fork(b: Block, name: str, source: Stream, sinks: Sequence[Stream], restart: Signal | None = None) -> None:
    """Give every word of ``source`` to each of ``sinks``, which may take it in different cycles.

    Latency 0, one word a cycle as long as all sinks take one. A sink that is ready gets its word at once, also while
    another one is not; so two branches that meet again later cannot block each other. The source's word is taken in
    the cycle in which the last of the sinks takes it. One register a sink, ``name_done_<k>``: sink k has the word
    already, which still waits for another sink. No path leads from a ready to any valid, nor from the ready of one
    sink to that of another.

    Parameters
    ----------
    name : str
        Beginning of the names of its wires and registers.
    source : Stream
        Where words come from; its ready is assigned.
    sinks : sequence of Stream
        One or more; all but their readys are assigned. Each may leave out ``last`` or ``side``.
    restart : Signal or None
        1 in a cycle after which no word is under way any more, beside the reset of ``b``.

    Raises
    ------
    ValueError
        If there is no sink, or a sink has a part that the source lacks or one of another width.
    """
    if not sinks:
        raise ValueError("fork: sinks must be one or more, got none")
    taken = b.wire(f"{name}_taken")
    served = []
    for k, sink in enumerate(sinks):
        _check("fork", source, sink)
        done = b.reg(f"{name}_done_{k}")
        sink.valid.assign(source.valid & ~done)  # a word that this sink has is not offered to it again
        _give_word(source, sink)
        has = b.wire(f"{name}_served_{k}", 1, any_of(done, sink.ready))
        b.on(source.valid, (done, has))
        b.on(taken, (done, 0))  # the next word is new to all sinks
        if restart is not None:
            b.on(restart, (done, 0))
        served.append(has)
    # ready looks at readys and registers alone: were it to look at a sink's valid, a sink whose ready waits for its
    # valid would close a loop
    source.ready.assign(all_of(*served))
    taken.assign(source.taken)


def join(b: Block, name: str, sources: Sequence[Stream], sink: Stream) -> None:
    """Take one word of each of ``sources`` together, and give them side by side to ``sink``.

    Gates alone: latency 0, one word a cycle, no register. The sink's word has the data of source 0 in its low bits,
    then that of source 1 and so on; its side bits are put together likewise. Its ``last`` is 1 where all sources say
    so: whoever joins streams of packets sees to it that they are equally long. A source's ready depends on the valids
    of the *other* sources, never on its own, and the sink's valid on no ready.

    Parameters
    ----------
    name : str
        Beginning of the names of its wires.
    sources : sequence of Stream
        One or more; their readys are assigned. All have ``last`` or none has.
    sink : Stream
        Where the words go; as wide as all sources together. It may leave out ``last`` or ``side``.

    Raises
    ------
    ValueError
        If there is no source, if some have ``last`` and some not, or if the sink has a part that the sources lack or
        one of another width.
    """
    if not sources:
        raise ValueError("join: sources must be one or more, got none")
    lasts = [source.last for source in sources if source.last is not None]
    if len(lasts) not in (0, len(sources)):
        raise ValueError(f"join: all sources must have last or none, got {len(lasts)} of {len(sources)}")
    sides = [source.side for source in sources if source.side is not None]
    joined = Stream(
        valid=b.wire(f"{name}_all_valid", 1, all_of(*[source.valid for source in sources])),
        ready=None,  # each source's own is assigned below
        data=_side_by_side([source.data for source in sources]),
        last=all_of(*lasts) if lasts else None,
        side=_side_by_side(sides) if sides else None,
    )
    _check("join", joined, sink)
    sink.valid.assign(joined.valid)
    _give_word(joined, sink)
    for k, source in enumerate(sources):
        others = [other.valid for place, other in enumerate(sources) if place != k]
        source.ready.assign(all_of(sink.ready, *others))


def _give_word(source: Stream, sink: Stream) -> None:
    """Assign data, and last and side where ``sink`` has them."""
    for name, signal in sink.parts():
        if name not in ("valid", "ready"):
            signal.assign(getattr(source, name))


def _check(what: str, source: Stream, sink: Stream) -> None:
    """Raise ValueError unless ``sink`` finds each of its parts in ``source``, in its own width."""
    for name, signal in sink.parts():
        if name in ("valid", "ready"):
            continue
        given = getattr(source, name)
        if given is None:
            raise ValueError(f"{what}: the sink's {name} must come from the source, which has none")
        if width(given) != width(signal):
            raise ValueError(
                f"{what}: {name} must be as wide in the sink as in the source, got {width(given)} bits into "
                f"{width(signal)}"
            )


def _side_by_side(parts: Sequence[Signal]) -> Signal:
    """The first part in the low bits."""
    return side_by_side(parts)
