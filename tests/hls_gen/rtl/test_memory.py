"""Memories: the RAMs, and rows loaded bank by bank over the load bus."""

import random

import pytest

from bitloom.hls_gen.design.memories.memory import Memory, Rows
from bitloom.hls_gen.design.parts import ONE_PORT
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram
from tests.errors import value_error

from .bench import Bench, load, together

WIDE = Memory.of("wide", 3, Rows(5, [("low", 1), ("middle", 40), ("high", 29)]))
SMALL = Memory.of("chunks", 4, Rows(9, [("a", 2), ("b", 4)], read_at_once=True))


def holder(stream_bits: int, style: str) -> Block:
    """A block with WIDE as block RAM, or as LUT RAM with one port, and SMALL as LUT RAM."""
    library = Library(stream_bits)
    b = Block(f"holder_{stream_bits}_{style}")
    bus = LoadBus.ports(b, stream_bits, [WIDE, SMALL])
    row_of_wide, read, row_of_small = b.input("row_of_wide", 3), b.input("read"), b.input("row_of_small", 4)
    wide = library.loadable(b, WIDE, bus, row_of_wide, read=read, style=style)
    parts = {**wide, **library.loadable(b, SMALL, bus, row_of_small)}
    for name, signal in parts.items():
        b.output(f"{name}_out", {**WIDE.widths, **SMALL.widths}[name], signal)
    return b


@pytest.fixture(scope="module", params=[(32, "auto"), (64, "auto"), (32, ONE_PORT)])
def held(request):
    with Bench(holder(*request.param)) as bench:
        yield bench, request.param[0]


@pytest.fixture(scope="module")
def rams():
    library = Library(32)
    kinds = {
        "block": ram(library, 70, 5, latency=1),
        "lut": ram(library, 3, 6, latency=0),
        "port": ram(library, 3, 6, latency=1, style=ONE_PORT),
    }
    with Bench(together("rams", kinds)) as bench:
        yield bench


def fields(memory: Memory, row: int) -> dict[str, int]:
    out = {}
    low = 0
    for name, width in memory.widths.items():
        out[name] = row >> low & (1 << width) - 1
        low += width
    return out


def test_block_ram(rams):
    """A cycle after ``read``, and held without it."""
    draw = random.Random(1)
    rows = [draw.getrandbits(70) for _ in range(5)]
    for k, row in enumerate(rows):
        rams.set(block_write=1, block_write_row=k, block_write_data=row)
        rams.tick()
    rams.set(block_write=0, block_write_data=0)
    shown = None
    for _ in range(100):
        read = draw.getrandbits(1)
        row = draw.randrange(5)
        rams.set(block_read=read, block_read_row=row)
        assert shown is None or rams["block_read_data"] == shown
        rams.tick()
        shown = rows[row] if read else shown
        assert shown is None or rams["block_read_data"] == shown


def test_lut_ram(rams):
    """At once; what was written, from the next cycle on."""
    draw = random.Random(2)
    rows = {}
    for _ in range(200):
        row = draw.randrange(6)
        data, write = draw.getrandbits(3), draw.getrandbits(1)
        read_row = draw.randrange(6)
        rams.set(lut_write=write, lut_write_row=row, lut_write_data=data, lut_read_row=read_row)
        assert rams["lut_read_data"] == rows.get(read_row, rams["lut_read_data"])
        rams.tick()
        if write:
            rows[row] = data


def test_one_port(rams):
    """A cycle after ``read``; a row that is written and read is read as it was."""
    draw = random.Random(3)
    rows = {}
    shown = None
    for _ in range(200):
        row = draw.randrange(6)
        data, write, read = draw.getrandbits(3), draw.getrandbits(1), draw.getrandbits(1)
        rams.set(port_row=row, port_write=write, port_write_data=data, port_read=read)
        rams.tick()
        shown = rows.get(row) if read else shown
        assert shown is None or rams["port_read_data"] == shown
        if write:
            rows[row] = data


def test_loadable(held):
    bench, stream_bits = held
    draw = random.Random(stream_bits)
    rows = {m.name: [draw.getrandbits(m.width) for _ in range(m.depth)] for m in (WIDE, SMALL)}
    for memory in (WIDE, SMALL):
        load(bench, memory, 0, rows[memory.name], stream_bits)
    for row in range(5):  # words for other memories
        bench.set(load_row=row, load_bank=0, load_data=draw.getrandbits(stream_bits))
        bench.tick()
    for k in range(SMALL.depth):
        bench.set(row_of_small=k, row_of_wide=k % WIDE.depth, read=1)
        assert {n: bench[f"{n}_out"] for n in ("a", "b")} == fields(SMALL, rows[SMALL.name][k])
        bench.tick()
        for _ in range(2):  # the second time without ``read``: it holds
            assert {n: bench[f"{n}_out"] for n in WIDE.widths} == fields(WIDE, rows[WIDE.name][k % WIDE.depth])
            bench.set(read=0, row_of_wide=(k + 1) % WIDE.depth)
            bench.tick()


def test_banks_are_written_alone(held):
    """One bank of a row changes; the others stay."""
    bench, stream_bits = held
    load(bench, WIDE, 0, [0] * 5, stream_bits)
    top = WIDE.width // stream_bits
    written = f"load_to_{WIDE.name}"
    bench.set(**{written: 1}, load_row=2, load_bank=top, load_data=(1 << stream_bits) - 1)
    bench.tick()
    bench[written] = 0
    for row in range(5):
        bench.set(read=1, row_of_wide=row)
        bench.tick()
        expected = ((1 << WIDE.width) - 1) >> top * stream_bits << top * stream_bits if row == 2 else 0
        assert {n: bench[f"{n}_out"] for n in WIDE.widths} == fields(WIDE, expected)


@pytest.mark.parametrize(
    ("width", "stream_bits", "banks"), [(1, 32, [1]), (32, 32, [32]), (70, 32, [32, 32, 6]), (70, 64, [64, 6])]
)
def test_banks(width, stream_bits, banks):
    assert Library(stream_bits).banks(width) == banks


@pytest.mark.parametrize(("memory", "latency"), [(WIDE, 0), (SMALL, 1)], ids=["late", "at_once"])
def test_loadable_is_read_as_its_memory_says(memory, latency):
    b = Block("holder")
    bus = LoadBus.ports(b, 32, [memory])
    row, read = b.input("row", 4), b.input("read")
    with value_error(f"{memory.name}: read must be None just where read_at_once, got {memory.rows.read_at_once}"):
        Library(32).loadable(b, memory, bus, row, read=read if latency else None)
