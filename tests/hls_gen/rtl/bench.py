"""One generated block under Verilator, its ports driven from Python, one cycle at a time.

    Bench(block)         bench["port"] = 3, bench["port"], bench.tick()
    Source, Sink         agents on ready/valid streams: random stalls, and the rules of the protocol
    run(bench, *agents)  cycle after cycle until all agents are done

Times: a word that is taken in cycle t crosses at the clock edge that ends cycle t, for inputs and for outputs; a
latency
of L cycles means that what is taken in cycle t is seen in cycle t + L.
"""

import ctypes
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from veriloggen.core import vtypes as vt

from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest, find_compiler, run_tool
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.overlay.virtual.sim import verilator as sim
from bitloom.overlay.virtual.sim.verilator_install import find_verilator

LIMIT = 100_000
"""Cycles after which ``run`` gives up."""


ACCESSOR = """
#include <cstdint>
#include <cstring>
void vl_finish(const char*, int, const char*) {{}}
void vl_stop(const char*, int, const char*) {{}}
void vl_fatal(const char*, int, const char*, const char*) {{}}
namespace {{
template <class T> void put(T& port, const uint32_t* words) {{
    uint64_t v = 0;
    std::memcpy(&v, words, sizeof v);
    port = static_cast<T>(v);
}}
template <std::size_t N> void put(VlWide<N>& port, const uint32_t* words) {{
    for (std::size_t i = 0; i < N; ++i) port[i] = words[i];
}}
template <class T> void get(const T& port, uint32_t* words) {{
    const uint64_t v = port;
    std::memcpy(words, &v, sizeof v);
}}
template <std::size_t N> void get(const VlWide<N>& port, uint32_t* words) {{
    for (std::size_t i = 0; i < N; ++i) words[i] = port[i];
}}
struct OneThread : VerilatedContext {{
    OneThread() {{ threads(1); }}
}};
struct Model {{
    OneThread context;
    Vtop top{{&context, ""}};
}};
void eval(Model* m, const uint32_t* in) {{
{puts}
    m->top.eval();
}}
}}
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT void* block_new() {{ return new Model; }}
EXPORT void block_delete(Model* m) {{ delete m; }}
EXPORT void block_eval(Model* m, const uint32_t* in, uint32_t* out) {{
    eval(m, in);
{gets}
}}
EXPORT void block_tick(Model* m, const uint32_t* in) {{
    eval(m, in);
{rise}
    m->top.eval();
{fall}
    m->top.eval();
}}
"""


def words_of(bits: int) -> int:
    """32-bit words of a port in the buffers, always in pairs: C++ and Python read 64 bits at once."""
    return 2 * -(-bits // 64)


class Bench:
    """A running model of ``block``; all inputs are 0 at first. ``cycle`` counts ticks."""

    def __init__(self, block: Block):
        ports = {name: (isinstance(block.m.io_variable[name], vt.Input), w) for name, w in block.port_widths.items()}
        self.clocked = "clk" in ports
        self.widths = {name: w for name, (_, w) in ports.items()}
        self._place: dict[str, tuple[bool, int, int]] = {}
        sizes = {True: 0, False: 0}
        for name, (is_input, w) in ports.items():
            if name != "clk":
                self._place[name] = (is_input, 4 * sizes[is_input], 4 * words_of(w))
                sizes[is_input] += words_of(w)
        self._in, self._out = ((ctypes.c_uint32 * max(2, sizes[way]))() for way in (True, False))
        buffers = {True: memoryview(self._in).cast("B"), False: memoryview(self._out).cast("B")}
        self._bytes = {n: buffers[is_input][low : low + size] for n, (is_input, low, size) in self._place.items()}
        self._limits = {name: 1 << self.widths[name] for name, (is_input, _, _) in self._place.items() if is_input}
        self._short = {name: view.cast("Q") for name, view in self._bytes.items() if len(view) == 8}
        self._library = ctypes.CDLL(str(build(block, self._place)))
        self._library.block_new.restype = ctypes.c_void_p
        self._model = ctypes.c_void_p(self._library.block_new())
        self._stale = True
        self.cycle = self.resets = 0
        if "rst" in ports:
            self.reset()

    def __setitem__(self, name: str, value: int) -> None:
        limit = self._limits.get(name)
        assert limit is not None, f"{name} is an output"
        assert 0 <= value < limit, f"{name} has {self.widths[name]} bits, got {value}"
        short = self._short.get(name)
        if short is not None:
            short[0] = value
        else:
            self._bytes[name][:] = int(value).to_bytes(len(self._bytes[name]), "little")
        self._stale = True

    def __getitem__(self, name: str) -> int:
        if self._stale:
            self._library.block_eval(self._model, self._in, self._out)
            self._stale = False
        short = self._short.get(name)
        return short[0] if short is not None else int.from_bytes(self._bytes[name], "little")

    def __contains__(self, name: str) -> bool:
        return name in self._place

    def set(self, **values: int) -> None:
        """Several inputs at once."""
        for name, value in values.items():
            self[name] = value

    def tick(self, cycles: int = 1) -> None:
        """Clock edges."""
        for _ in range(cycles):
            self._library.block_tick(self._model, self._in)
            self._stale = True
            self.cycle += 1

    def reset(self) -> None:
        """Two cycles of rst."""
        self.resets += 1
        self["rst"] = 1
        self.tick(2)
        self["rst"] = 0

    def close(self) -> None:
        """Ends the model."""
        self._library.block_delete(self._model)

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def bench_of(block: Callable[[], Block]) -> Any:
    """A fixture: the bench of a block that all tests of a file share."""

    @pytest.fixture(scope="module")
    def built() -> Iterator[Bench]:
        with Bench(block()) as bench:
            yield bench

    return built


def text_of(block: Block) -> str:
    """Verilog of a block and of all modules below it, as designs have it."""
    return "\n".join(block.modules().values())


def build(block: Block, place: Mapping[str, tuple[bool, int, int]]) -> Path:
    """Shared object of ``block``, from the cache where it has been built before."""
    verilator = find_verilator()
    compiler = find_compiler()
    text = text_of(block)
    accessor = _accessor(block, place)
    listing = ["--make", "json"] if verilator.version >= sim.MAKE_JSON_SINCE else []
    sizes = [f"-G{name}={value}" for name, value in block.values.items()]
    verilate = ["--cc", "--prefix", sim.PREFIX, "--top-module", block.m.name, *sizes, *sim.VERILATE_FLAGS, *listing]
    flags = [*sim._base_flags(verilator, compiler, False), "-O0"]  # compiling takes longer than running
    key = digest(text, accessor, repr((verilator, compiler, verilate, flags)))

    def make(folder: Path) -> None:
        source = folder / "block.v"
        source.write_text(text)
        command = [verilator.program, *verilate, "-Mdir", folder, source]
        run_tool(command, "Verilator", env=verilator.environment, cwd=folder)
        runtime, fast, slow = sim._sources(verilator, folder, False)
        whole = "".join(f'#include "{path.name}"\n' for path in [*fast, *slow])  # one unit: headers are read once
        (folder / "block.cpp").write_text(whole + accessor)
        objects = sim._runtime(verilator, compiler, runtime)
        options = [*flags, *sim.headers(compiler, flags), f"-I{folder}"]
        compile_ = [compiler.program, *options, "-c", "block.cpp"]
        run_tool(compile_, f"{compiler.program} {block.m.name}", cwd=folder)
        link = [compiler.program, "-shared", "-o", "block.so", "block.o", *objects, "-pthread"]
        run_tool(link, "linking", cwd=folder)
        for path in folder.iterdir():
            if path.name != "block.so":
                path.unlink()

    return cached_folder("block", key, make) / "block.so"


def _accessor(block: Block, place: Mapping[str, tuple[bool, int, int]]) -> str:
    """C++ that copies the ports from and to buffers of 32-bit words."""
    puts, gets = [], []
    for name, (is_input, low, _) in place.items():
        port = f"m->top.{name}"
        if is_input:
            puts.append(f"    put({port}, in + {low // 4});")
        else:
            gets.append(f"    get({port}, out + {low // 4});")
    edges = ["    m->top.clk = 1;", "    m->top.clk = 0;"] if "clk" in block.m.io_variable else ["", ""]
    return ACCESSOR.format(puts="\n".join(puts), gets="\n".join(gets), rise=edges[0], fall=edges[1])


class Agent:
    """Something at the ports of a bench: each cycle ``drive`` sets inputs, ``look`` reads what is so at its end."""

    late = False
    """Drives after the others, since it looks at outputs while it drives."""

    def drive(self) -> None:
        """Set inputs for this cycle."""

    def look(self) -> None:
        """Look at the ports just before the clock edge."""

    @property
    def done(self) -> bool:
        """Whether ``run`` need not wait for it."""
        return True


class Each(Agent):
    """Calls a function at the end of every cycle."""

    def __init__(self, look: Callable[[], None]):
        self.look = look  # type: ignore[method-assign]


class Source(Agent):
    """Gives ``items`` (port name without prefix -> value) to an input stream.

    stall : chance that a cycle passes before valid rises. While valid is 0 the other ports carry noise.
    taken : cycle in which each item was taken.
    """

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        items: Sequence[Mapping[str, int]],
        stall: float = 0,
        seed: int = 0,
        ready: str | None = None,
    ):
        self.bench = bench
        self.prefix = prefix
        self.items = list(items)
        self.stall = stall
        self.random = random.Random(seed)
        self.taken = []
        self.ready = ready or f"{prefix}ready"
        self._offered = False

    def drive(self) -> None:
        bench = self.bench
        left = len(self.taken) < len(self.items)
        self._offered = left and (self._offered or self.random.random() >= self.stall)
        bench[f"{self.prefix}valid"] = int(self._offered)
        if self._offered:
            for name, value in self.items[len(self.taken)].items():
                bench[self.prefix + name] = int(value)
        else:
            for name in self.items[0] if self.items else ():
                bench[self.prefix + name] = self.random.getrandbits(bench.widths[self.prefix + name])

    def look(self) -> None:
        if self._offered and self.bench[self.ready]:
            self.taken.append(self.bench.cycle)
            self._offered = False

    @property
    def done(self) -> bool:
        return len(self.taken) == len(self.items)


class Sink(Agent):
    """Takes ``expect`` words from an output stream and holds it to the rules: valid does not look at ready; once valid,
    the word stays until it is taken.

    words : what was taken, as tuples of the ports ``names``; taken : cycle of each; seen : cycle of its first offer.
    stall : chance that ready is 0 in a cycle; ``closed`` (may be set at any time) keeps it at 0.
    """

    late = True

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        names: Sequence[str] = ("data",),
        expect: int | None = None,
        stall: float = 0,
        seed: int = 1,
        ready: str | None = None,
    ):
        self.bench = bench
        self.names = [prefix + n for n in names]
        self.expect = expect
        self.stall = stall
        self.valid = f"{prefix}valid"
        self.ready = ready or f"{prefix}ready"
        self.random = random.Random(seed)
        self.words: list[tuple[int, ...]] = []
        self.taken: list[int] = []
        self.seen: list[int] = []
        self.closed = False
        self._held: tuple[int, ...] | None = None

    def _offer(self) -> tuple[int, ...] | None:
        return tuple(self.bench[n] for n in self.names) if self.bench[self.valid] else None

    def drive(self) -> None:
        ready = int(not self.closed and self.random.random() >= self.stall)
        self.bench[self.ready] = 1 - ready
        other = self._offer()
        self.bench[self.ready] = ready
        assert self._offer() == other, f"{self.valid} or its data depend on {self.ready}"

    def look(self) -> None:
        offer = self._offer()
        if self._held is not None:
            assert offer == self._held, f"{self.valid}: {self._held} was offered and not taken, now {offer}"
        elif offer is not None:
            self.seen.append(self.bench.cycle)
        self._held = offer
        if offer is not None and self.bench[self.ready]:
            self.words.append(offer)
            self.taken.append(self.bench.cycle)
            self._held = None

    @property
    def done(self) -> bool:
        return self.expect is None or len(self.words) >= self.expect

    @property
    def values(self) -> list[int]:
        """``words`` of a stream with one port."""
        return [word for (word,) in self.words]


def run(bench: Bench, *agents: Agent, cycles: int | None = None, extra: int = 20) -> None:
    """``cycles`` cycles; or until all agents are done and then ``extra`` more, in which no sink may get more than
    it expects."""
    order = sorted(agents, key=lambda a: a.late)
    end = None if cycles is None else bench.cycle + cycles
    limit = bench.cycle + LIMIT
    while end is None or bench.cycle < end:
        for agent in order:
            agent.drive()
        for agent in order:
            agent.look()
        bench.tick()
        if end is None and all(agent.done for agent in agents):
            end = bench.cycle + extra
        assert end is not None or bench.cycle < limit, "the agents are not done"
    for agent in agents:
        if isinstance(agent, Sink) and agent.expect is not None:
            assert len(agent.words) <= agent.expect, f"{agent.valid}: {len(agent.words)} words, not {agent.expect}"


def steady(cycles: Sequence[int], step: int = 1) -> bool:
    """Whether the cycles are ``step`` apart."""
    return all(b - a == step for a, b in pairwise(cycles))


@dataclass
class World:
    """A core with registers, the agents at its ports, and the processor that reads and writes the registers."""

    bench: Bench
    agents: list[Agent]

    def step(self) -> None:
        """A cycle."""
        agents = sorted(self.agents, key=lambda agent: agent.late)
        for agent in agents:
            agent.drive()
        for agent in agents:
            agent.look()
        self.bench.tick()

    def until(self, holds: Callable[[], bool]) -> int:
        """Cycles until something holds."""
        begin = self.bench.cycle
        while not holds():
            self.step()
            assert self.bench.cycle - begin < LIMIT, "it never came"
        return self.bench.cycle - begin

    def write(self, offset: int, value: int, bus: str = "s_axi") -> None:
        """Write a register."""
        bench = self.bench
        waits = {"aw", "w"}
        ports = {"awaddr": offset, "wdata": value, "wstrb": 15, "bready": 1}
        bench.set(**{f"{bus}_{port}": number for port, number in ports.items()})
        answered = False
        while waits or not answered:
            bench.set(**{f"{bus}_awvalid": "aw" in waits, f"{bus}_wvalid": "w" in waits})
            taken = {channel for channel in waits if bench[f"{bus}_{channel}ready"]}
            answered = bool(bench[f"{bus}_bvalid"])
            assert not answered or bench[f"{bus}_bresp"] == 0
            self.step()
            waits -= taken
        bench[f"{bus}_bready"] = 0

    def read(self, offset: int, bus: str = "s_axi") -> int:
        """Read a register."""
        bench = self.bench
        bench.set(**{f"{bus}_araddr": offset, f"{bus}_arvalid": 1, f"{bus}_rready": 1})
        self.until(lambda: bool(bench[f"{bus}_arready"]))
        self.step()
        bench[f"{bus}_arvalid"] = 0
        self.until(lambda: bool(bench[f"{bus}_rvalid"]))
        value = bench[f"{bus}_rdata"]
        self.step()
        bench[f"{bus}_rready"] = 0
        return value


def on_load_bus(bench: Bench, npu: int = 0) -> list[tuple[str, int, int, int]]:
    """Writes of the loader on the bench in this cycle to memories of an NPU: (memory, bank, row, data)."""
    written = [name for name in bench.widths if name.startswith(f"npu{npu}_load_to_") and bench[name]]
    word = tuple(bench[f"load_{part}"] for part in ("bank", "row", "data"))
    return [(name.partition("load_to_")[2], *word) for name in written]


def load(bench: Bench, memory: Any, first_row: int, rows: Sequence[int], stream_bits: int = 32) -> None:
    """Rows of ``memory`` (name, width) over the load bus, a stream word a cycle."""
    written = f"load_to_{memory.name}"
    for number, row in enumerate(rows, first_row):
        for bank in range(-(-memory.width // stream_bits)):
            data = (int(row) >> (bank * stream_bits)) & ((1 << min(stream_bits, bench.widths["load_data"])) - 1)
            bench.set(**{written: 1}, load_row=number, load_data=data)
            if "load_bank" in bench:
                bench["load_bank"] = bank
            bench.tick()
    bench[written] = 0


def pack(memory: Any, values: Mapping[str, int]) -> int:
    """A row of ``memory`` (fields: (name, width), low bits first) from its fields; those not named are 0."""
    row, low = 0, 0
    for name, w in memory.widths.items():
        row |= (int(values.get(name, 0)) & ((1 << w) - 1)) << low
        low += w
    assert set(values) <= set(memory.widths), f"{memory.name} has no {set(values)}"
    return row


def together(name: str, blocks: Mapping[str, Block]) -> Block:
    """A block with all of ``blocks`` side by side, for one build: ports ``<key>_<port>``."""
    clocked = any("clk" in block.m.io_variable for block in blocks.values())
    whole = Block(name, clocked=clocked)
    for key, block in blocks.items():
        ports = {}
        for port, w in block.port_widths.items():
            if port not in ("clk", "rst"):
                make = whole.input if isinstance(block.m.io_variable[port], vt.Input) else whole.output
                ports[port] = make(f"{key}_{port}", w)
        whole.instance(block, key, **ports)
    return whole
