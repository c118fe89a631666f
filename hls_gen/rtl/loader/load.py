"""Rows of a LOAD, and of WEIGHTS: which memory they are for, and the load bus that carries them there.

    header --> NPU, depth and banks of the addressed memory
    stream word --> load bus: a bit for each memory of each NPU; bank, row, data for all

A row is sent in stream words, low bits first, each of which is one bank of the memory; so a row is never put together
in registers. The bus is a register, which cuts the long way from the stream to memories all over the chip.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of
from bitloom.hls_gen.design.widths import MEMORY_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, bits, by_number, choose, eq, width
from bitloom.hls_gen.rtl.primitives.memory import write_port
from bitloom.hls_gen.rtl.primitives.places import Places

from .header import HeaderWords, kind_number
from .state import LoaderContext


@dataclass(frozen=True)
class LoadPort:
    """Widths of the load bus."""

    bank_bits: int
    """Width of a bank's number in the loader."""
    bus_bank_bits: int
    """The same on the bus, 0 where no memory outside the loader has more than one bank."""
    row_bits: int
    """Width of a row's number."""
    data_bits: int
    """Width of a bank on the bus: a stream word, or less where every memory outside the loader is narrower."""

    @classmethod
    def of(cls, design: Design) -> "LoadPort":
        """Wide enough for every memory of the design; the network rows stay in the loader."""
        memories = [m for npu in design.npus for m in memory_map(npu)]
        widest = max(m.width for m in memories)
        outside = max(m.width for m in memories if m.name != "network")
        banks, bus_banks = (-(-width // design.stream_bits) for width in (widest, outside))
        return cls(
            bank_bits=bits_for(banks - 1),
            bus_bank_bits=bits_for(bus_banks - 1) if bus_banks > 1 else 0,
            row_bits=max(bits_for(m.depth - 1) for m in memories),
            data_bits=min(design.stream_bits, outside),
        )


@dataclass(frozen=True)
class AddressedMemory:
    """The memory that the header at hand addresses."""

    memory: Signal
    """Id of the memory, 8 bits."""
    is_weights: Signal | None
    """The packet is WEIGHTS, so that the memory is the kernel memory; None in designs without streamed weights."""
    is_network: Signal
    """Register: it is memory ``network`` of its NPU."""
    of_npu: list[Signal]
    """Register for each NPU of several: it is addressed. One alone is not asked."""
    depth: Signal
    """Register: rows of that memory, 0 if there is no such memory."""
    before_last_bank: Signal
    """Register: number of its rows' bank before the last one."""
    one_bank: Signal
    """Register: its rows have one bank."""


def memory_id(b: Block, n: int, memory: Memory) -> Signal:
    """The id of a memory of NPU ``n``, as a constant of the module."""
    return b.localparam(f"NPU{n}_{memory.name.upper()}_MEMORY", memory.id, MEMORY_BITS)


def addressed_memory(c: LoaderContext, header: HeaderWords, port: LoadPort) -> AddressedMemory:
    """Looks the addressed memory up among those of all NPUs, whose ids count from 0."""
    b = c.b
    memory = header.memory
    is_weights = None
    b.comment("Addressed memory: its depth, 0 if there is no such memory, and the last bank of its rows.")
    if c.design.npus[0].loader.stream_weights:
        is_weights = b.wire("is_weights", 1, eq(header.kind, kind_number(b, "WEIGHTS", headers.WEIGHTS)))
        kernels = memory_id(b, 0, memory_of(c.design.npus[0], "kernels"))  # every NPU's has the same
        memory = b.wire("target_memory", MEMORY_BITS, choose(is_weights, kernels, memory, MEMORY_BITS))
    several = len(c.design.npus) > 1
    target = AddressedMemory(
        memory,
        is_weights,
        is_network=b.reg("is_network", init=None),
        of_npu=[b.reg(f"is_npu{n}", init=None) for n in range(len(c.design.npus) * several)],
        depth=b.reg("memory_depth", port.row_bits + 1, init=None),
        before_last_bank=b.reg("memory_before_last_bank", port.bank_bits, init=None),
        one_bank=b.reg("memory_one_bank", init=None),
    )
    # registers: word 0 of a header has stood for a cycle when the header is complete. The judge refuses other NPUs.
    maps = [memory_map(npu) for npu in c.design.npus]
    id_bits = bits_for(max(map(len, maps)) - 1)
    exists = eq(bits(memory, id_bits, MEMORY_BITS - id_bits), 0)
    rows, before_last, single = [], [], []  # by NPU and id
    for n, memories in enumerate(maps):
        lasts = [-(-m.width // c.design.stream_bits) - 1 for m in memories]
        depths = [b.localparam(f"NPU{n}_{m.name.upper()}_DEPTH", m.depth, width(target.depth)) for m in memories]
        rows.append(depths)
        before_last.append([max(last - 1, 0) for last in lasts])
        single.append([int(not last) for last in lasts])
    place = bits(memory, 0, id_bits)
    tables = [(target.depth, rows), (target.before_last_bank, before_last), (target.one_bank, single)]
    for register, table in tables:
        w = width(register)
        of_npu = [b.wire(f"npu{n}_{register.name}", w, by_number(place, row, w)) for n, row in enumerate(table)]
        number = bits(header.npu, 0, bits_for(len(maps) - 1))
        value = by_number(number, of_npu, w) if several else of_npu[0]
        b.on(None, (register, choose(exists, value, 0, w) if register is target.depth else value))
    b.on(None, (target.is_network, eq(memory, memory_id(b, 0, maps[0][0]))))
    b.on(None, *[(hit, eq(header.npu, n)) for n, hit in enumerate(target.of_npu)])
    return target


@dataclass(frozen=True)
class RowCursor:
    """Where the next stream word of a packet's rows goes."""

    bank: Signal
    """Bank of the row."""
    bank_last: Signal
    """Register: it is the row's last one."""
    row: Signal
    """Row of the memory."""
    places: Places
    """Places of rows in the packet."""

    @classmethod
    def make(cls, c: LoaderContext, header: HeaderWords, port: LoadPort, target: AddressedMemory) -> "RowCursor":
        """Registers, which are those of the packet's first word as it begins. Where a packet may begin its header was
        found to fit the memory, so its numbers may be cut."""
        b = c.b
        bank = b.reg("bank", port.bank_bits, init=None)
        bank_last = b.reg("bank_last", init=None)
        row = b.reg("row", port.row_bits, init=None)
        rows = b.wire("packet_rows", port.row_bits + 1, bits(header.length, 0, port.row_bits + 1))
        b.on(c.at["JUDGE"], (bank, 0), (bank_last, target.one_bank), (row, bits(header.address, 0, port.row_bits)))
        return cls(bank, bank_last, row, Places(b, "row_place", rows))

    @property
    def is_last(self) -> Signal:
        """Register: it is the packet's last row."""
        return self.places.last


@dataclass(frozen=True)
class LoadedWord:
    """The word of a row that is taken in this cycle."""

    taken: Signal
    """There is one."""
    row_ends: Signal
    """It would be its row's last."""


def load_rows(c: LoaderContext, target: AddressedMemory, cursor: RowCursor, port: LoadPort) -> LoadedWord:
    """Takes rows in state LOAD, and puts them on the load bus a cycle later.

    The loader gets the ports ``npu<n>_load_to_<memory>``, ``load_bank`` (where a memory has several banks),
    ``load_row`` and ``load_data``.
    """
    b = c.b
    b.comment("Load bus: a register, which cuts the long way to memories all over the chip.")
    row_ends = cursor.bank_last
    taken = b.wire("load", 1, c.at["LOAD"] & c.given)
    next_bank = choose(row_ends, 0, add(cursor.bank, 1, port.bank_bits), port.bank_bits)
    next_last = choose(row_ends, target.one_bank, eq(cursor.bank, target.before_last_bank), 1)
    b.on(taken, (cursor.bank, next_bank), (row_ends, next_last))
    b.on(
        taken & row_ends,
        (cursor.row, add(cursor.row, 1, port.row_bits)),
    )
    cursor.places.advance(taken & row_ends, c.at["JUDGE"])
    for n, npu in enumerate(c.design.npus):
        id_bits = bits_for(len(memory_map(npu)) - 1)  # the judge refuses other ids
        for memory in memory_map(npu):
            if memory.name != "network":
                here = eq(bits(target.memory, 0, id_bits), bits(memory_id(b, n, memory), 0, id_bits))
                written = b.output_reg(f"npu{n}_{write_port(memory.name)}")
                b.on(None, (written, all_of(taken, *target.of_npu[n : n + 1], here)))
    for name, w, value in (
        *([("bank", port.bus_bank_bits, cursor.bank)] if port.bus_bank_bits else []),
        ("row", port.row_bits, cursor.row),
        ("data", port.data_bits, bits(c.data, 0, port.data_bits)),
    ):
        b.on(None, (b.output_reg(f"load_{name}", w, init=None), value))
    return LoadedWord(taken, row_ends)
