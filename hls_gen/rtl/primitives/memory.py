"""Memories and the bus that loads them.  Contents: docs/reference/device.md, "Words and bits".

    load bus (one stream word a cycle) --> bank of a row --> read port, one row a cycle

A row wider than the stream is split into banks of one stream word, each with its own write enable, so that a row is
never assembled in registers. One write port and one read port: block RAM (read latency 1) or LUT RAM (latency 0). Where
no row is needed while one is written, one port serves both: LUT RAM of three quarters of the LUTs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from veriloggen import Cat, If

from bitloom.hls_gen.design.memories.memory import FieldWidths, Memory
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import ONE_PORT
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, bits, choose, eq, resize, width
from .parameters import row_width
from .text import Header

LOW_BANK_BITS = 3
"""Bits of the lower part of a bank's number (`_bank_hits`)."""
Target = Literal["simulation", "synthesis"]
"""Tool for which the modules of a design are made: Verilator or a synthesis tool. Some modules have another body for
each."""


@dataclass(frozen=True)
class LoadBus:
    """The load bus as ports of a block, no wider than the block's memories need."""

    writes: Mapping[str, Signal]
    """By name of a memory, 1 where ``data`` is to be written to that memory in this cycle."""
    bank: Signal | None
    """Which stream word of the row; None where every row is one bank."""
    row: Signal
    """Number of the row."""
    data: Signal
    """Contents of the bank."""

    @classmethod
    def ports(cls, b: Block, stream_bits: int, memories: Sequence[Memory]) -> "LoadBus":
        """Input ports ``load_*`` of ``b``, which holds ``memories``."""
        banks = max(-(-m.width // stream_bits) for m in memories)
        row_bits = max(bits_for(m.depth - 1) for m in memories)
        data_bits = max(m.width for m in memories)
        return cls(
            {m.name: b.input(write_port(m.name)) for m in memories},
            b.input("load_bank", bits_for(banks - 1)) if banks > 1 else None,
            b.input("load_row", row_bits),
            b.input("load_data", min(stream_bits, data_bits)),
        )

    def to(self, block: Block) -> dict[str, Signal]:
        """Port map for an instance of ``block``."""
        whole = {
            **{write_port(name): signal for name, signal in self.writes.items()},
            "load_bank": self.bank,
            "load_row": self.row,
            "load_data": self.data,
        }
        widths = block.port_widths
        return {name: resize(signal, widths[name]) for name, signal in whole.items() if name in widths}


def write_port(memory: str) -> str:
    """Name of the port of the load bus that says whether the memory of this name is written."""
    return f"load_to_{memory}"


RAMS: dict[tuple[int, str], str] = {
    (0, "auto"): "lut_ram",
    (1, "auto"): "block_ram",
    (1, "block"): "block_ram_forced",
    (1, "distributed"): "lut_ram_registered",
    (1, ONE_PORT): "lut_ram_one_port",
}
"""Modules of memories: their names by latency of the read and by style (`ram`)."""


def ram(library: "Library", width: int, depth: int, *, latency: int, style: str = "auto") -> Block:
    """Memory with a write port and a read port, or with one port for both.

    Parameters
    ----------
    width : int
        Bits of a row.
    depth : int
        Rows.
    latency : int
        1: ``read_data`` is a register that follows ``read`` by a cycle and holds (block RAM). 0: ``read_data`` follows
        ``read_row`` at once (LUT RAM).
    style : str
        Kind of RAM that synthesis makes of the memory: "block", "distributed" (LUT RAM), or "auto", where synthesis
        chooses. LUT RAM that is read at once is "auto". `ONE_PORT`: LUT RAM with ``row`` in place of ``write_row`` and
        ``read_row``.

    Returns
    -------
    Block
        One of the modules `RAMS`, in this size.
    """
    return library.get(_ram, latency, style).sized(WIDTH=width, DEPTH=depth)


_RAM = """{ports}

    write, {write_row}, write_data --> DEPTH rows of WIDTH bits --> {read_by} --> read_data

A row that is written and read in the same cycle is read as it was before. There is no reset: what was never written
means nothing.
"""
"""Text of the header."""


_TWO_PORTS = "Simple dual-port memory: one write port, one read port."


def _ram(latency: int, style: str) -> Block:
    """The module."""
    delay = "1 cycle from read and read_row to read_data" if latency else "0 cycles from read_row to read_data"
    one_port = style == ONE_PORT
    written, looked_at = ("row", "row") if one_port else ("write_row", "read_row")
    about = "Single-port memory: one row a cycle, to write or to read." if one_port else _TWO_PORTS
    delay = delay.replace("read_row", looked_at)
    text = _RAM.format(ports=about, write_row=written, read_by=f"{looked_at} and read" if latency else looked_at)
    rate = "one write or one read a cycle" if one_port else "one write and one read a cycle"
    header = Header(text, rate=rate, latency=delay)
    b = Block(RAMS[latency, style], header, reset=False)
    width = b.parameter("WIDTH", 8, "bits of a row")
    depth = b.parameter("DEPTH", 16, "rows")
    address = b.parameter("ROW_WIDTH", row_width(depth), "bits of a row's number, which follow from DEPTH")
    write = b.input("write", means="write_data goes into row write_row at this clock edge")
    row = b.input(written, address, means="row that is written" + " or read" * one_port)
    data = b.input("write_data", width, means="what is written")
    read = b.input("read", means=f"read_data is to take row {looked_at}; else it holds") if latency else None
    read_row = row if one_port else b.input("read_row", address, means="row that is read")
    what = "the row read" + (", a register" if latency else "")

    # # #

    if style != "auto":
        b.m.EmbeddedCode(f'(* ram_style = "{"distributed" if one_port else style}" *)')
    mem = b.memory("mem", width, depth)
    b.clocked(If(write)(mem[row](data)))
    if latency:
        out = b.output_reg("read_data", width, init=None, means=what)
        b.clocked(If(read)(out(mem[read_row])))
    else:
        b.output("read_data", width, mem[read_row], means=what)
    return b


class Library:
    """The modules of one design, each made once.

    Parameters
    ----------
    stream_bits : int
        Width of the stream, and so of a bank.
    target : str
        Tool for which the modules are made, "simulation" or "synthesis".
    npus : sequence of Npu
        The design's NPUs, in order.
    """

    def __init__(self, stream_bits: int, target: Target = "simulation", npus: Sequence[Npu] = ()):
        self.stream_bits = stream_bits
        self._kinds = list(dict.fromkeys(npus))
        self.target = target
        self._blocks: dict[tuple, Block] = {}

    def get(self, make, *args, **kwargs) -> Block:
        """``make(*args, **kwargs)``, the same block for the same arguments."""
        key = (make, args, tuple(sorted(kwargs.items())))
        if key not in self._blocks:
            self._blocks[key] = make(*args, **kwargs)
        return self._blocks[key]

    def name(self, module: str, npu: Npu) -> str:
        """Name of a module that is made for ``npu``: with a number where NPUs differ; equal ones share modules."""
        if len(self._kinds) < 2:
            return module
        number = f"npu_{self._kinds.index(npu)}"
        return number if module == "npu" else f"{module}_{number}"

    def banks(self, width: int) -> list[int]:
        """Widths of the banks of a row of ``width`` bits."""
        full, rest = divmod(width, self.stream_bits)
        return [self.stream_bits] * full + [rest] * (rest > 0)

    def loadable(
        self, b: Block, memory: Memory, bus: LoadBus, row: Signal, read: Signal | None = None, style: str = "auto"
    ) -> dict[str, Signal]:
        """A memory of the network inside ``b``, written by the load bus.

        Parameters
        ----------
        memory : Memory
            Its name, id, depth and fields.
        bus : LoadBus
            Who writes it.
        row : Signal
            Number of the row that is read.
        read : Signal or None
            Read enable of a memory whose row comes a cycle later; None for one that is read at once
            (``Rows.read_at_once``), which is LUT RAM.
        style : str
            Kind of RAM that synthesis makes of the memory, as in `ram`. With `ONE_PORT` a row that is read while
            another is written means nothing.

        Returns
        -------
        dict
            Name -> wire of each field of the row.

        Raises
        ------
        ValueError
            If a memory that is read at once has a read enable, or another one has none.
        """
        if (read is None) != memory.rows.read_at_once:
            raise ValueError(
                f"{memory.name}: read must be None just where read_at_once, got {memory.rows.read_at_once}"
            )
        name = memory.name
        address = bits_for(memory.depth - 1)
        written = bus.writes[name]
        read_row = resize(row, address)
        load_row = bits(bus.row, 0, address)
        rows = {"write_row": load_row, "read_row": read_row}
        if style == ONE_PORT:
            rows = {"row": b.wire(f"{name}_at", address, choose(written, load_row, read_row, address))}
        banks = self.banks(memory.width)
        hits = [written] if bus.bank is None else _bank_hits(b, name, written, bus.bank, len(banks))
        parts = []
        for i, bank_width in enumerate(banks):
            tag = f"{name}_{i}" if len(banks) > 1 else name
            block = ram(self, bank_width, memory.depth, latency=0 if read is None else 1, style=style)
            data = b.wire(f"{tag}_data", bank_width)
            ports = {
                "write": hits[i] if bus.bank is None else b.wire(f"{tag}_write", 1, hits[i]),
                **rows,
                "write_data": bits(bus.data, 0, bank_width),
                "read_data": data,
            }
            if read is not None:
                ports["read"] = read
            b.instance(block, f"{tag}_ram", **ports)
            parts.append(data)
        whole = parts[0] if len(parts) == 1 else b.wire(f"{name}_row", memory.width, Cat(*reversed(parts)))
        return split(b, whole, list(memory.widths.items()), f"{name}_")


def _bank_hits(b: Block, name: str, written: Signal, bank: Signal, count: int) -> list[Signal]:
    """Whether each of ``count`` banks of the memory ``name`` has the number ``bank`` while the memory is ``written``.

    Of many banks the two parts of the number are looked at once for all: synthesis takes two LUTs a bank for the
    whole number, and one for this.
    """
    if count <= 1 << LOW_BANK_BITS:
        return [written & eq(bank, i) for i in range(count)]
    low, high = bits(bank, 0, LOW_BANK_BITS), bits(bank, LOW_BANK_BITS, width(bank) - LOW_BANK_BITS)
    places = [b.wire(f"{name}_place_{k}", 1, eq(low, k)) for k in range(1 << LOW_BANK_BITS)]
    groups = [b.wire(f"{name}_group_{k}", 1, written & eq(high, k)) for k in range(-(-count // len(places)))]
    return [groups[i // len(places)] & places[i % len(places)] for i in range(count)]


def split(b: Block, row: Signal, fields: FieldWidths, prefix: str) -> dict[str, Signal]:
    """Fields of a row, low bits first, as named wires."""
    out = {}
    low = 0
    for name, w in fields:
        out[name] = b.wire(f"{prefix}{name}", w, bits(row, low, w))
        low += w
    return out
