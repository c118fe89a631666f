"""What the packets of a program mean, in plain Python: a device that computes frames from the rows of its memories.

Written from docs/reference/device.md and the contracts at the heads of hls_gen's files; it uses neither the hardware's
code nor the compiler's. Writers are as eager as the hardware's ever could be, over layers and frames: a tuple that is
given back too early is overwritten before it is read, and one given back too late ends in a Deadlock.
"""

from collections import deque
from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np

from driver.manifest import Manifest
from driver.packets import packets

MASK = 0xFFFFFFFF


class Deadlock(Exception):
    """The sequencer waits for a word that can't come."""


class Tap(NamedTuple):
    layer: int
    first: bool
    last: bool
    """First and last tap of a pass over a window."""
    kernel_row: int
    words: list[int]


class Sequencer:
    """A tuple memory with its writer, and the taps that the tables make of it, layer after layer without end."""

    def __init__(self, device: "Device", prefix: str, last_layer: int, capacity: int, sources: list[deque[int]]):
        self.device, self.prefix, self.layers, self.sources = device, prefix, range(last_layer + 1), sources
        self.memory: list[int | None] = [None] * capacity
        self.free, self.written, self.claimed = capacity, 0, 0
        self.writers, self.left = cycle(self.layers), 0

    def row(self, name: str, row: int) -> dict[str, int]:
        return self.device.row(self.prefix + name, row)

    def fill(self) -> int:
        """Write whatever has come and has room; how many words were written since the start."""
        while True:
            if not self.left:
                inputs = self.row("inputs", next(self.writers))
                self.left, self.source = inputs["words"], self.sources[inputs.get("from_ring", 0)]
            if not self.free or not self.source:
                return self.written
            self.memory[self.written % len(self.memory)] = self.source.popleft()
            self.free, self.written, self.left = self.free - 1, self.written + 1, self.left - 1

    def taps(self) -> Iterator[Tap | None]:
        """None where it waits for words."""
        layer_word = 0
        for layer in cycle(self.layers):
            row = self.row("layers", layer)
            words, hold, start = row["words_minus_1"] + 1, row["hold"], row.get("start_row", 0)
            after = (row["flags_base"], row["old_base"], row.get("jump_base", 0), layer_word)
            for _ in range(row["windows_minus_1"] + 1):
                before, landing = after, 0
                for group in range(row.get("groups_minus_1", 0) + 1):
                    flag, old, jump, new_word = before
                    group_row = row.get("kernel_base", 0) + group * row.get("group_rows", 0)
                    kernel_row, first, last, count = group_row + start, True, False, 0
                    while not last:
                        if row["direct"]:
                            flags = {"new": 1, "last": int(count == row["window_taps_minus_1"]), "skip": 0}
                        else:
                            flags, flag = self.row("flags", flag), flag + 1
                        last, count = bool(flags["last"]), count + 1
                        if flags["new"]:
                            address, new_word = new_word, new_word + words
                            if group == 0:
                                self.claimed += words
                                if hold:
                                    hold -= 1
                                else:
                                    self.free += words
                        else:
                            address, old = layer_word + self.row("olds", old)["word"], old + 1
                        while self.fill() < self.claimed:
                            yield None
                        if flags["skip"]:
                            continue
                        data = [self.memory[(address + k) % len(self.memory)] for k in range(words)]
                        yield Tap(layer, first, last, kernel_row, data)
                        first, landing, kernel_row = False, 0, kernel_row + words
                        if flags.get("jump"):
                            landing, jump = self.row("jumps", jump)["row"], jump + 1
                            kernel_row = group_row + landing
                after, start = (flag, old, jump, new_word), landing
            self.free += row["tail"]
            layer_word = new_word


class Gearbox:
    """Words of ``have`` bits into words of ``width`` bits, element 0 low."""

    def __init__(self, have: int, width: int):
        self.have, self.width, self.word, self.count = have, width, 0, 0

    def push(self, word: int, last: bool = False) -> list[int]:
        if self.have > self.width:
            return [word >> low & (1 << self.width) - 1 for low in range(0, self.have, self.width)]
        self.word, self.count = self.word | word << self.have * self.count, self.count + 1
        if not last and self.count < self.width // self.have:
            return []
        word, self.word, self.count = self.word, 0, 0
        return [word]


class Device:
    """Hardware of a manifest with one NPU, its memories filled by LOAD packets."""

    def __init__(self, manifest: Manifest, parameters: np.ndarray):
        self.manifest, self.npu, self.beats = manifest, manifest.npus[0], 0
        self.memories: dict[str, dict[int, int]] = {m.name: {} for m in self.npu.memories}
        for header, memory, rows in packets(manifest, parameters):
            for i, words in enumerate(rows.tolist()):
                self.memories[memory.name][header.address + i] = sum(w << 32 * k for k, w in enumerate(words))
        self.known: dict[tuple[str, int], dict[str, int]] = {}
        self.kernels: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}

    def row(self, name: str, row: int) -> dict[str, int]:
        """Fields of a row; KeyError if it was never loaded."""
        if (name, row) not in self.known:
            value = self.memories[name][row]
            self.known[name, row] = {f.name: f.of(value) for f in self.npu.memory(name).fields}
        return self.known[name, row]

    def run(self, payloads: np.ndarray) -> np.ndarray:
        """(frames, payload words) uint32 -> (frames, result words) uint32, one frame right behind the other."""
        network, depth, npu = self.row("network", 0), self.npu.parameters, self.npu
        self.host = deque(word for payload in payloads for word in self.input_words(payload))
        self.ring, self.steps, self.out = deque[int](), deque[int](), list[int]()
        conv = Sequencer(self, "", network["last_layer"], depth["tuple_words"], [self.host, self.ring])
        pool = Sequencer(self, "pool_", network["last_pool_layer"], depth["pool_words"], [self.steps])
        self.to_pool, self.to_ring = Gearbox(npu.ol, npu.pfp), Gearbox(npu.pfp, npu.kfp)
        taps, self.pool_taps, self.queue = conv.taps(), pool.taps(), list[int]()
        for _ in payloads:
            for layer in conv.layers:
                row = self.row("results", layer)
                for _ in range(row["windows_minus_1"] + 1):
                    self.limit = row["threshold_base"]
                    for group in range(row["groups_minus_1"] + 1):
                        self.results(row, group == row["groups_minus_1"], *self.sums(taps))
        assert not [*self.host, *self.ring, *self.steps], "words are left over"
        out = Gearbox(32 if row["raw"] else npu.kfp, self.manifest.stream_bits)
        per_frame = len(self.out) // len(payloads)
        words = [w for i, word in enumerate(self.out, 1) for w in out.push(word, i % per_frame == 0)]
        parts = [word >> low & MASK for word in words for low in range(0, self.manifest.stream_bits, 32)]
        return np.array(parts, np.uint32).reshape(len(payloads), -1)

    def input_words(self, payload: np.ndarray) -> list[int]:
        """Words of KFP bits of a frame."""
        kfp, stream, network = self.npu.kfp, self.manifest.stream_bits, self.row("network", 0)
        number = sum(word << 32 * i for i, word in enumerate(payload.tolist()))
        beats, count = 32 * len(payload) // stream, network["frame_words"]
        together, pieces = max(stream // kfp, 1), -(-kfp // stream)
        assert beats == network["frame_beats"] == -(-count // together) * pieces
        assert network["frame_tail"] == (count - 1) % together
        lows = [i // together * pieces * stream + i % together * kfp for i in range(count)]
        return [number >> low & (1 << kfp) - 1 for low in lows]

    def sums(self, taps: Iterator[Tap | None]) -> tuple[list[int], int]:
        """What the PEs hold after a pass over a window, and the offsets of its taps."""
        sums, offset, tap = [0] * self.npu.kgp, 0, None
        while tap is None or not tap.last:
            tap = next(taps)
            if tap is None:
                raise Deadlock(f"{len(self.host)} words wait at the host, {len(self.ring)} in the map store")
            offset += self.row("layers", tap.layer)["tap_offset"]
            for i, features in enumerate(tap.words):
                self.beats += 1
                for k, (weights, groups) in enumerate(self.kernel(tap.kernel_row + i)):
                    sums[k] += sum(factor * (~(features ^ weights) & mask).bit_count() for mask, factor in groups)
        return sums, offset

    def kernel(self, row: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """(weights, [(lanes, factor of their matches)]) of each PE."""
        if row not in self.kernels:
            content, kfp, planes = self.row("kernels", row), self.npu.kfp, self.npu.parameters["planes"]
            code, groups = content.get("code", 0), [((1 << kfp) - 1, 1)]
            if planes and code:
                size = kfp // (planes + 1)
                first = [(1 << 2 * size) - 1] + [(1 << size) - 1 << (g + 1) * size for g in range(1, planes)]
                groups = [(mask, -1 << g if g == planes - 1 else 1 << g) for g, mask in enumerate(first)]
            elif code:
                sign, shift = divmod(code, 1 << self.npu.parameters["shift_bits"])
                groups = [(groups[0][0], (-1 if sign else 1) << shift)]
            weights = [content["weights"] >> k * kfp & (1 << kfp) - 1 for k in range(self.npu.kgp)]
            self.kernels[row] = [(w, groups) for w in weights]
        return self.kernels[row]

    def results(self, row: dict[str, int], last_group: bool, sums: list[int], offset: int) -> None:
        """A group's results, OL at a time, each step once for every level."""
        ol, acc = self.npu.ol, self.npu.parameters["acc_bits"]
        values = [signed((s << row["double"]) - offset, acc) for s in sums] + [0] * ol
        units = row["last_units_minus_1"] + 1 if last_group else -(-self.npu.kgp // ol)
        for unit in range(units):
            step = values[unit * ol : unit * ol + ol]
            if row["raw"]:
                self.out += [value & MASK for value in step]
                continue
            for level in range(row["levels_minus_1"] + 1):
                limits = self.row("thresholds", self.limit)["thresholds"]
                self.limit += 1
                bits = sum((v >= signed(limits >> k * acc, acc)) << k for k, v in enumerate(step))
                end = last_group and unit == units - 1 and level == row["levels_minus_1"]
                self.steps.extend(self.to_pool.push(bits, end))
        if not row["raw"]:
            self.pool()

    def pool(self) -> None:
        """Let the pool take all that has come."""
        while (tap := next(self.pool_taps)) is not None:
            self.queue = [a | b for a, b in zip(self.queue, tap.words)] if not tap.first else tap.words
            if tap.last:
                words = [w for i, q in enumerate(self.queue, 1) for w in self.to_ring.push(q, i == len(self.queue))]
                (self.out if self.row("pool_layers", tap.layer)["to_host"] else self.ring).extend(words)
                assert len(self.ring) <= self.npu.parameters["map_words"]


def signed(value: int, bits: int) -> int:
    """The low ``bits`` of ``value`` as two's complement."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
