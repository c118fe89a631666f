"""The meaning of a program's packets, in plain Python: a device that computes frames from the rows of its memories.

Written from docs/reference/device.md and the contracts at the heads of hls_gen's files; it uses neither the hardware's
code nor the compiler's. Writers are as eager as the hardware's ever could be, over layers and frames: a tuple that is
given back too early is overwritten before it is read, and one given back too late ends in a Deadlock. Between NPUs are
the two buffers of a ping-pong pair, and the spill store where a ring closes, no larger than the design says; an NPU
does nothing at all while its results find no room there.
"""

from collections import deque
from collections.abc import Generator, Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np

from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of
from bitloom.hls_gen.design.packets import packets
from bitloom.hls_gen.design.parts import present

MASK = 0xFFFFFFFF
TABLES = (("flags", "flags_base"), ("olds", "old_base"), ("jumps", "jump_base"), ("aheads", "ahead_base"))
Said = tuple[dict[str, int], int]
"""The entry of a table at hand, and the row of the entry that follows."""


class Deadlock(Exception):
    """A sequencer waits for a word that can't come, or a result for room."""


class Tap(NamedTuple):
    layer: int
    first: bool
    last: bool
    """First and last tap of a pass over a window."""
    kernel_row: int
    words: list[int]


class Queue:
    """Words with a mark on the last one of each map. capacity : None where there is no end to it."""

    def __init__(self, capacity: int | None = None):
        self.words = deque[tuple[int, bool]]()
        self.capacity = capacity
        self.moved = 0

    def put(self, word: int, last: bool) -> bool:
        """Whether there was room for the word."""
        if self.capacity is not None and len(self.words) >= self.capacity:
            return False
        self.words.append((word, last))
        self.moved += 1
        return True

    def ready(self) -> bool:
        return bool(self.words)

    def get(self) -> tuple[int, bool]:
        self.moved += 1
        return self.words.popleft()

    def __len__(self) -> int:
        return len(self.words)


class PingPong(Queue):
    """Two buffers: a chunk is read when it is complete, its buffer is free when it has been read to the end."""

    def __init__(self, buffer_words: int, chunks: list[int]):
        super().__init__()
        assert all(1 <= chunk <= buffer_words for chunk in chunks), f"chunks {chunks} in buffers of {buffer_words}"
        self.maps = cycle(chunks)
        self.chunk = next(self.maps, 0)  # 0: none ever comes
        self.filling: list[tuple[int, bool]] = []
        self.full: deque[int] = deque()  # words left of each complete chunk
        self.sizes: list[int] = []  # of every chunk so far

    def put(self, word: int, last: bool) -> bool:
        assert self.chunk, "a map comes that has no row in memory chunks"
        if len(self.full) == 2:
            return False
        self.moved += 1
        self.filling.append((word, last))
        if last or len(self.filling) == self.chunk:
            self.full.append(len(self.filling))
            self.sizes.append(len(self.filling))
            self.words.extend(self.filling)
            self.filling = []
        if last:
            self.chunk = next(self.maps)
        return True

    def get(self) -> tuple[int, bool]:
        self.full[0] -= 1
        if not self.full[0]:
            self.full.popleft()
        return super().get()

    def __len__(self) -> int:
        return len(self.words) + len(self.filling)


class Sequencer:
    """A tuple memory with its writer, and the taps that the tables make of it, layer after layer without end."""

    def __init__(self, unit: "Unit", prefix: str, last_layer: int, capacity: int, sources: list[Queue]):
        self.unit = unit
        self.prefix = prefix
        self.layers = range(last_layer + 1)
        self.sources = sources
        self.memory: list[int | None] = [None] * capacity
        self.free = capacity
        self.written, self.claimed = 0, 0
        self.writers = cycle(self.layers)
        self.left = 0

    def row(self, name: str, row: int) -> dict[str, int]:
        return self.unit.row(self.prefix + name, row)

    def first(self, layer: dict[str, int], name: str, base: str) -> Said:
        """The first entry of a table for a layer, and the row that follows."""
        said = {key.removeprefix(f"first_{name}_"): value for key, value in layer.items() if f"first_{name}_" in key}
        return said, layer.get(base, 0)

    def following(self, name: str, said: Said) -> Said:
        return self.row(name, said[1]), said[1] + 1

    def fill(self) -> int:
        """Write whatever has come and has room; how many words were written since the start."""
        while True:
            if not self.left:
                inputs = self.row("inputs", next(self.writers))
                self.left = inputs["words"]
                self.source = self.sources[inputs.get("source", 0)]
            if not self.free or not self.source.ready():
                return self.written
            self.memory[self.written % len(self.memory)], last = self.source.get()
            self.free = self.free - 1
            self.written = self.written + 1
            self.left = self.left - 1
            assert last == (not self.left), f"{self.prefix}inputs: {self.left} words are missing when a map ends"

    def claim(self, words: int) -> None:
        """Claim words; when as many as the layer holds have been, each gives one back."""
        self.claimed = self.claimed + words
        held = min(self.hold, words)
        self.hold = self.hold - held
        self.free = self.free + words - held

    def taps(self) -> Iterator[Tap | None]:
        """None where it waits for words."""
        layer_word = 0
        for layer in cycle(self.layers):
            row = self.row("layers", layer)
            words = row["words_minus_1"] + 1
            start = row.get("start_row", 0)
            self.hold = row["hold_words"] if "ahead_base" in row else row["hold_tuples"] * words
            part = row.get("part_words_minus_1", words - 1) + 1  # words of a tuple that a pass reads
            tables = [self.first(row, *names) for names in TABLES]
            after = (*tables, layer_word)
            for _ in range(row["windows_minus_1"] + 1):
                before = after
                landing = 0
                for group in range(row.get("groups_minus_1", 0) + 1):
                    flag, old, jump, ahead, new_word = before
                    group_row = row.get("kernel_base", 0) + group * row.get("group_rows", 0)
                    kernel_row = group_row + start
                    first, last = True, False
                    count = 0
                    first_word = group // (row.get("part_groups_minus_1", 0) + 1) * row.get("part_step", 0)
                    while not last:
                        if row["direct"]:
                            flags = {"new": 1, "last": int(count == row["window_taps_minus_1"])}
                        else:
                            flags, flag = flag[0], self.following("flags", flag)
                        last = bool(flags["last"])
                        count = count + 1
                        if flags.get("ahead"):
                            more, ahead = ahead[0]["words"], self.following("aheads", ahead)
                            new_word += more
                            self.claim(more * (group == 0))
                        if flags["new"]:
                            address, new_word = new_word, new_word + words
                            self.claim(words * (group == 0))
                        else:
                            address, old = layer_word + old[0]["word"], self.following("olds", old)
                        while self.fill() < self.claimed:
                            yield None
                        if flags.get("skip"):
                            continue
                        address += first_word
                        data = [self.memory[(address + k) % len(self.memory)] for k in range(part)]
                        yield Tap(layer, first, last, kernel_row, data)
                        first = False
                        landing = 0
                        kernel_row = kernel_row + part
                        if flags.get("jump"):
                            landing, jump = jump[0]["row"], self.following("jumps", jump)
                            kernel_row = group_row + landing
                after = (flag, old, jump, ahead, new_word)
                start = landing
            self.free += row["hold_words"]
            layer_word = new_word


class Gearbox:
    """Words of ``have`` bits into words of ``width`` bits, element 0 low."""

    def __init__(self, have: int, width: int):
        self.have = have
        self.width = width
        self.word, self.count = 0, 0

    def push(self, word: int, last: bool = False) -> list[int]:
        if self.have > self.width:
            return [word >> low & (1 << self.width) - 1 for low in range(0, self.have, self.width)]
        self.word, self.count = self.word | word << self.have * self.count, self.count + 1
        if not last and self.count < self.width // self.have:
            return []
        word, self.word, self.count = self.word, 0, 0
        return [word]


class Unit:
    """One NPU, its memories filled by LOAD packets."""

    def __init__(self, device: "Device", number: int):
        self.manifest = device.manifest
        self.npu = device.manifest.npus[number]
        self.number = number
        self.memories: dict[str, dict[int, int]] = {m.name: {} for m in memory_map(self.npu)}
        self.known: dict[tuple[str, int], dict[str, int]] = {}
        self.words: dict[int, np.ndarray] = {}
        self.kernels: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.passes: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}

    def row(self, name: str, row: int) -> dict[str, int]:
        """Fields of a row; KeyError if it was never loaded."""
        if (name, row) not in self.known:
            value = self.memories[name][row]
            self.known[name, row] = {f.name: f.of(value) for f in memory_of(self.npu, name).fields}
        return self.known[name, row]

    @property
    def idle(self) -> bool:
        """It has nothing to do in this network."""
        return not self.memories["kernels"]

    def start(self) -> None:
        """Empty, before the first frame."""
        network = self.row("network", 0)
        self.beats = self.frames = self.taken = 0
        inlet_kinds = {"host": Queue, "loop": Queue, "ring": self.ping_pong}
        self.inlets = {name: inlet_kinds[name]() for name in self.npu.ports.inlets}
        self.conv = Sequencer(
            self, "", network["last_layer"], self.npu.sequencer.tuple_words, list(self.inlets.values())
        )
        self.steps = Queue()
        self.windows = 0
        self.raw = list[tuple[int, bool]]()
        if self.npu.pool_unit:
            self.pool = Sequencer(
                self, "pool_", network["last_pool_layer"], present(self.npu.pool_unit).words, [self.steps]
            )
            self.pool_taps = self.pool.taps()
            self.queue = list[int]()
            self.to_pool = Gearbox(self.npu.results.ol, present(self.npu.pool_unit).pfp)
            self.pool_word = present(self.npu.pool_unit).pfp
        else:
            self.to_pool = Gearbox(self.npu.results.ol, self.npu.results.ol)
            self.pool_word = self.npu.results.ol
        self.work = self.computing()

    def ping_pong(self) -> PingPong:
        """The pair in front of this NPU, which runs through the chunk sizes of the maps that come."""
        maps = range(self.row("network", 0)["last_chunk"] + 1) if self.memories["chunks"] else ()
        chunks = [self.row("chunks", i)["words_minus_1"] + 1 for i in maps]
        return PingPong(self.npu.ports.buffer_words, chunks)

    def connect(self, outlets: dict[str, tuple[Queue, int]]) -> None:
        """outlets : who takes the words of each, and their width."""
        assert list(outlets) == list(self.npu.ports.outlets)
        self.outlets = [(queue, Gearbox(self.pool_word, width)) for queue, width in outlets.values()]

    @property
    def moved(self) -> int:
        """Words that went in or out and beats, so that one can see whether anything happens."""
        return sum(q.moved for q in [*self.inlets.values(), *(q for q, _ in self.outlets)]) + self.beats

    def advance(self) -> None:
        """Compute until words or room are missing."""
        self.conv.fill()
        next(self.work, None)

    def computing(self) -> Iterator[None]:
        """Frame after frame; yields where words or room are missing."""
        taps = self.conv.taps()
        if self.idle:
            while next(taps) is None:
                yield
            raise AssertionError(f"NPU {self.number} has no layers and begins to compute")
        while True:
            for layer in self.conv.layers:
                row = self.row("results", layer)
                for window in range(row["windows_minus_1"] + 1):
                    self.limit = row["threshold_base"]
                    for group in range(row["groups_minus_1"] + 1):
                        sums = yield from self.sums(taps)
                        last_group = group == row["groups_minus_1"]
                        last_window = window == row["windows_minus_1"]
                        yield from self.results(row, last_group, last_window, *sums)
            self.frames += 1

    def input_words(self, payload: np.ndarray) -> list[int]:
        """Words of KFP bits of a frame."""
        stream = self.manifest.stream_bits
        network = self.row("network", 0)
        kfp = self.npu.array.kfp
        number = sum(word << 32 * i for i, word in enumerate(payload.tolist()))
        beats = 32 * len(payload) // stream
        count = network["frame_words"]
        together = max(stream // kfp, 1)
        pieces = -(-kfp // stream)
        assert beats == network["frame_beats"] == -(-count // together) * pieces
        assert network["frame_last_piece"] == (count - 1) % together
        lows = [i // together * pieces * stream + i % together * kfp for i in range(count)]
        return [number >> low & (1 << kfp) - 1 for low in lows]

    def sums(self, taps: Iterator[Tap | None]) -> Generator[None, None, tuple[list[int], int]]:
        """Returns what the PEs hold after a pass over a window, and the offsets of its taps."""
        rows, words = list[int](), list[int]()
        offset = 0
        tap = None
        while tap is None or not tap.last:
            while (tap := next(taps)) is None:
                yield
            offset += self.row("layers", tap.layer)["tap_offset"]
            rows += range(tap.kernel_row, tap.kernel_row + len(tap.words))
            words += tap.words
            self.beats += len(tap.words)
        return self.matches(tuple(rows), words), offset

    def matches(self, rows: tuple[int, ...], words: list[int]) -> list[int]:
        """The count of each PE for ``words``, each against the kernel row beside it."""
        if rows not in self.passes:
            weights, factors = zip(*map(self.kernel, rows))
            self.passes[rows] = np.stack(weights), np.stack(factors)[:, None]
        weights, factors = self.passes[rows]  # (words, KGP, KFP) bits, (words, 1, KFP)
        features = np.stack([self.lanes(word) for word in words])[:, None]  # (words, 1, KFP) bits
        counted: list[int] = np.where(features == weights, factors, 0).sum(axis=(0, 2)).tolist()
        return counted

    def lanes(self, word: int) -> np.ndarray:
        """The bits of a word, lane 0 first."""
        if word not in self.words:
            self.words[word] = np.array([word >> lane & 1 for lane in range(self.npu.array.kfp)], bool)
            if self.npu.adds_integers:  # a lane of 0 beside each integer: its match gives back what -1 takes away
                size = self.npu.array.plane_lanes
                self.words[word][size : 2 * size] = False
        return self.words[word]

    def kernel(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights of each PE, (KGP, KFP) bits, and the factor of a match in each lane, (KFP,)."""
        if row in self.kernels:
            return self.kernels[row]
        content = self.row("kernels", row)
        kfp, planes = self.npu.array.kfp, self.npu.array.planes
        code = content.get("code", int(planes > 0))  # without the bit: integers
        factors = np.ones(kfp, np.int64)
        if planes and code:
            size = kfp // (planes + 1)
            lanes_of = [2 * size] + [size] * (planes - 1)
            factors = np.repeat([-1 << g if g == planes - 1 else 1 << g for g in range(planes)], lanes_of)
            factors = np.concatenate([factors, np.zeros(kfp - len(factors), np.int64)])
        elif code:
            sign, shift = divmod(code, 1 << self.npu.value("shift_bits"))
            factors = factors * ((-1 if sign else 1) << shift)
        several, apart = self.npu.array.lanes_per_weight, self.npu.array.lane_step
        of_lane = [lane // (several * apart) * apart + lane % apart for lane in range(kfp)]
        if planes and "code" not in content:  # an integer's planes have one weight
            of_lane = [lane % size for lane in range(kfp)]
        stored = max(of_lane) + 1
        weights = np.array(
            [[content["weights"] >> k * stored + i & 1 for i in of_lane] for k in range(self.npu.array.kgp)], bool
        )
        self.kernels[row] = weights, factors
        return self.kernels[row]

    def results(
        self, row: dict[str, int], last_group: bool, last_window: bool, sums: list[int], offset: int
    ) -> Iterator[None]:
        """A group's results, OL at a time, each step once for every level."""
        ol, acc = self.npu.results.ol, self.npu.array.acc_bits
        values = [signed((s << row["double"]) - offset, acc) for s in sums] + [0] * ol
        units = row["last_units_minus_1"] + 1 if last_group else -(-self.npu.array.kgp // ol)
        for unit in range(units):
            step = values[unit * ol : unit * ol + ol]
            last_unit = last_group and unit == units - 1
            if row.get("raw"):
                self.raw += [(value & MASK, last_unit and last_window and k == ol - 1) for k, value in enumerate(step)]
                continue
            for level in range(row["levels_minus_1"] + 1):
                limits = self.row("thresholds", self.limit)["thresholds"]
                self.limit += 1
                bits = sum((v >= signed(limits >> k * acc, acc)) << k for k, v in enumerate(step))
                end = last_unit and level == row["levels_minus_1"]
                words = self.to_pool.push(bits, end)
                for i, word in enumerate(words, 1):
                    last = end and last_window and i == len(words)
                    if self.npu.pool_unit:
                        self.steps.put(word, last)
                    else:
                        yield from self.give(row, word, end and i == len(words), last)
        if self.npu.pool_unit and not row.get("raw"):
            yield from self.pooling()

    def pooling(self) -> Iterator[None]:
        """Let the pool take all that has come."""
        while (tap := next(self.pool_taps)) is not None:
            self.queue = [a | b for a, b in zip(self.queue, tap.words)] if not tap.first else tap.words
            if tap.last:
                row = self.row("pool_layers", tap.layer)
                self.windows += 1
                last_window = self.windows == row["windows_minus_1"] + 1
                for i, word in enumerate(self.queue, 1):
                    end = i == len(self.queue)
                    yield from self.give(row, word, end, end and last_window)
                if last_window:
                    self.windows = 0

    def give(self, row: dict[str, int], word: int, tuple_last: bool, map_last: bool) -> Iterator[None]:
        """A word to the outlet that the row names, in the words of who takes it."""
        queue, gearbox = self.outlets[row.get("target", 0)]
        words = gearbox.push(word, tuple_last)
        for i, result in enumerate(words, 1):
            while not queue.put(result, map_last and i == len(words)):
                yield


class Device:
    """Hardware of a manifest. spill_words : words of the store at a ring's closing edge."""

    def __init__(self, manifest: Manifest, parameters: np.ndarray, spill_words: int = 0):
        self.manifest = manifest
        self.spill_words = spill_words
        self.units = [Unit(self, n) for n in range(len(manifest.npus))]
        for header, memory, rows in packets(manifest, parameters):
            for i, words in enumerate(rows.tolist()):
                content = self.units[header.npu].memories[memory.name]
                content[header.address + i] = sum(w << 32 * k for k, w in enumerate(words))

    @property
    def beats(self) -> int:
        return sum(unit.beats for unit in self.units)

    def run(self, payloads: np.ndarray) -> np.ndarray:
        """(frames, payload words) uint32 -> (frames, result words) uint32, one frame right behind the other."""
        for unit in self.units:
            unit.start()
        self.sent = [Queue() for _ in self.units]
        spill = self.connect()
        for payload in payloads:
            words = self.units[0].input_words(payload)
            for i, word in enumerate(words, 1):
                self.units[0].inlets["host"].put(word, i == len(words))
        busy = [unit for unit in self.units if not unit.idle]
        moved = -1
        while moved != (moved := sum(unit.moved for unit in self.units)):
            for unit in self.units:
                unit.advance()
            if spill is not None:
                store, pair = spill
                while store.ready() and pair.put(*store.words[0]):
                    store.get()
        left = [q for unit in self.units for q in [unit.steps, *unit.inlets.values()]] + [q for q in (spill or [])[:1]]
        if any(unit.frames != len(payloads) for unit in busy):
            raise Deadlock(f"frames done: {[unit.frames for unit in busy]}; words wait: {[len(q) for q in left]}")
        assert not any(map(len, left)), "words are left over"
        return self.results(len(payloads))

    def connect(self) -> tuple[Queue, PingPong] | None:
        """Every outlet to who takes its words; returns the spill store and the pair behind it, if there is one."""
        spill = None
        for n, unit in enumerate(self.units):
            after = self.units[(n + 1) % len(self.units)]
            outlets = dict[str, tuple[Queue, int]]()
            for name in unit.npu.ports.outlets:
                if name == "ring":
                    target = after.inlets["ring"]
                    if after.number == 0 and self.spill_words:
                        spill = (Queue(self.spill_words), target)
                        target = spill[0]
                    outlets[name] = (target, after.npu.array.kfp)
                elif name == "loop":
                    outlets[name] = (unit.inlets["loop"], unit.npu.array.kfp)
                else:
                    outlets[name] = (self.sent[n], unit.npu.array.kfp)
            unit.connect(outlets)
        return spill

    def results(self, frames: int) -> np.ndarray:
        """The stream words of the one NPU that sends."""
        sending = [(unit.raw, 32) for unit in self.units if unit.raw]
        sending += [(list(q.words), u.npu.array.kfp) for q, u in zip(self.sent, self.units) if q]
        ((words, width),) = sending
        assert sum(last for _, last in words) == frames
        out = Gearbox(width, self.manifest.stream_bits)
        stream = [w for word, last in words for w in out.push(word, last)]
        parts = [word >> low & MASK for word in stream for low in range(0, self.manifest.stream_bits, 32)]
        return np.array(parts, np.uint32).reshape(frames, -1)


def signed(value: int, bits: int) -> int:
    """The low ``bits`` of ``value`` as two's complement."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
