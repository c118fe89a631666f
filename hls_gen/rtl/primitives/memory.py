"""Memories and the bus that loads them.  Contents: docs/reference/device.md, "Words and bits".

    load bus (one stream word a cycle) --> bank of a row --> read port, one row a cycle

A row wider than the stream is split into banks of one stream word, each with its own write enable, so that a row is
never assembled in registers. One write port and one read port: block RAM (read latency 1) or LUT RAM (latency 0).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from veriloggen import Cat, If

from bitloom.hls_gen.design.memories import Memory, Parts
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import MEMORY_BITS, bits_for
from bitloom.hls_gen.rtl.array.popcount import Body

from .block import Block, Signal, all_of, bits, eq, resize
from .block import width as width_of


@dataclass(frozen=True)
class LoadBus:
    """The load bus as ports of a block: which memory, bank and row take ``data``. No wider than its memories need."""

    valid: Signal
    memory: Signal
    bank: Signal | None
    row: Signal
    data: Signal

    @classmethod
    def ports(cls, b: Block, stream_bits: int, memories: Sequence[Memory]) -> "LoadBus":
        """Input ports ``load_*`` of ``b``, which holds ``memories``."""
        banks = max(-(-m.width // stream_bits) for m in memories)
        return cls(
            b.input("load_valid"),
            b.input("load_memory", MEMORY_BITS),
            b.input("load_bank", bits_for(banks - 1)) if banks > 1 else None,
            b.input("load_row", max(bits_for(m.depth - 1) for m in memories)),
            b.input("load_data", min(stream_bits, max(m.width for m in memories))),
        )

    def to(self, block: Block) -> dict[str, Signal]:
        """Port map for an instance of ``block``."""
        whole = {
            "load_valid": self.valid,
            "load_memory": self.memory,
            "load_bank": self.bank,
            "load_row": self.row,
            "load_data": self.data,
        }
        ports = block.m.io_variable
        return {name: resize(signal, width_of(ports[name])) for name, signal in whole.items() if name in ports}


def ram(width: int, depth: int, *, latency: int, style: str = "auto") -> Block:
    """Simple dual-port memory. latency 1: ``read_data`` follows ``read`` by a cycle and holds; latency 0:
    asynchronous. style : what synthesis makes of it, "block" or "distributed" (LUT RAM), "auto": as it likes."""
    kind = "" if style == "auto" else f"_{style}"
    b = Block(f"{'block' if latency else 'lut'}_ram_{width}x{depth}{kind}", reset=False)
    address = bits_for(depth - 1)
    write, row, data = b.input("write"), b.input("write_row", address), b.input("write_data", width)
    read = b.input("read") if latency else None
    read_row = b.input("read_row", address)

    # # #

    if style != "auto":
        b.m.EmbeddedCode(f'(* ram_style = "{style}" *)')
    mem = b.memory("mem", width, depth)
    b.clocked(If(write)(mem[row](data)))
    if latency:
        out = b.output_reg("read_data", width, init=None)
        b.clocked(If(read)(out(mem[read_row])))
    else:
        b.output("read_data", width, mem[read_row])
    return b


class Library:
    """The modules of one design, each made once. ``popcount_body``: what popcount.py puts into its modules."""

    def __init__(self, stream_bits: int, popcount_body: Body = "countones", npus: Sequence[Npu] = ()):
        self.stream_bits = stream_bits
        self._kinds = list(dict.fromkeys(npus))
        self.popcount_body = popcount_body
        self._made: dict[tuple, Block] = {}

    def get(self, make, *args, **kwargs) -> Block:
        """``make(*args, **kwargs)``, the same block for the same arguments."""
        key = (make, args, tuple(sorted(kwargs.items())))
        if key not in self._made:
            self._made[key] = make(*args, **kwargs)
        return self._made[key]

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
        """``memory`` inside ``b``, written by the load bus; the fields of the row read at ``row``, as named wires.

        With ``read`` (enable) it is block RAM, or what ``style`` says, and the row comes a cycle later, else LUT RAM
        and it comes at once.
        """
        name, address = memory.name, bits_for(memory.depth - 1)
        selected = b.wire(f"{name}_selected", 1, all_of(bus.valid, eq(bus.memory, memory.id)))
        banks = self.banks(memory.width)
        parts = []
        for i, bank_width in enumerate(banks):
            tag = f"{name}_{i}" if len(banks) > 1 else name
            block = self.get(ram, bank_width, memory.depth, latency=0 if read is None else 1, style=style)
            data = b.wire(f"{tag}_data", bank_width)
            hit = selected if bus.bank is None else b.wire(f"{tag}_write", 1, selected & eq(bus.bank, i))
            ports = {
                "write": hit,
                "write_row": bits(bus.row, 0, address),
                "write_data": bits(bus.data, 0, bank_width),
                "read_row": resize(row, address),
                "read_data": data,
            }
            if read is not None:
                ports["read"] = read
            b.instance(block, f"{tag}_ram", **ports)
            parts.append(data)
        whole = parts[0] if len(parts) == 1 else b.wire(f"{name}_row", memory.width, Cat(*reversed(parts)))
        return split(b, whole, list(memory.widths.items()), f"{name}_")


def split(b: Block, row: Signal, fields: Parts, prefix: str) -> dict[str, Signal]:
    """Fields of a row, low bits first, as named wires."""
    out, low = {}, 0
    for name, w in fields:
        out[name] = b.wire(f"{prefix}{name}", w, bits(row, low, w))
        low += w
    return out
