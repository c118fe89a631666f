"""What the packets of a program mean, in plain Python: a device that computes frames from the rows of its memories.

Written from docs/reference/device.md and the contracts at the heads of hls_gen's files; it uses neither the hardware's
code nor the compiler's. Writers are as eager as the hardware's ever could be, over layers and frames: a tuple that is
given back too early is overwritten before it is read, and one given back too late ends in a Deadlock.
"""

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import cycle
from typing import NamedTuple

import numpy as np

from driver.manifest import Manifest
from driver.packets import packets


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

    def row(self, name: str, row: int) -> dict[str, int]:
        """Fields of a row; KeyError if it was never loaded."""
        if (name, row) not in self.known:
            value = self.memories[name][row]
            self.known[name, row] = {f.name: f.of(value) for f in self.npu.memory(name).fields}
        return self.known[name, row]

    def run(self, payloads: np.ndarray) -> np.ndarray:
        """(frames, payload words) uint32 -> (frames, result words) uint32, one frame right behind the other."""
        network, capacity, bits = self.row("network", 0), self.npu.parameters, self.manifest.stream_bits
        host, ring, steps = deque(w for p in payloads for w in self.input_words(p)), deque(), deque()
        conv = Sequencer(self, "", network["last_layer"], capacity["tuple_words"], [host, ring])
        pool = Sequencer(self, "pool_", network["last_pool_layer"], capacity["pool_words"], [steps])
        layers = [self.row("results", i) for i in conv.layers]
        left = len(payloads) * sum((r["windows_minus_1"] + 1) * (r["groups_minus_1"] + 1) for r in layers)
        to_pool, to_ring = Gearbox(self.npu.ol, self.npu.pfp), Gearbox(self.npu.pfp, self.npu.kfp)
        out: list[int] = []
        pooling = self.pooled(pool.taps())
        waited = group = 0
        for tap in conv.taps():
            if tap is None:
                if waited:
                    raise Deadlock(f"words {len(host)} from the host, {len(ring)} in the ring")
                for word, last, to_host in iter(lambda: next(pooling), None):
                    (out if to_host else ring).extend(to_ring.push(word, last))
                assert len(ring) <= capacity["map_words"]
                waited = 1
                continue
            waited = 0
            self.beats += len(tap.words)
            sums = self.accumulate(tap, [0] * self.npu.kgp if tap.first else sums)
            taps = 1 if tap.first else taps + 1
            if not tap.last:
                continue
            row = layers[tap.layer]
            offset = taps * self.row("layers", tap.layer)["tap_offset"]
            last_group = group == row["groups_minus_1"]
            if row["raw"]:
                out += [v & 0xFFFFFFFF for step in self.values(row, sums, offset, last_group) for v in step]
            else:
                limit = row["threshold_base"] if group == 0 else limit
                found = [v for v in self.values(row, sums, offset, last_group) for _ in range(row["levels_minus_1"] + 1)]
                for i, step in enumerate(found):
                    word = sum((v >= t) << k for k, (v, t) in enumerate(zip(step, self.limits(limit))))
                    steps.extend(to_pool.push(word, last_group and i == len(found) - 1))
                    limit += 1
            group = 0 if last_group else group + 1
            left -= 1
            if not left:
                break
        for word, last, to_host in iter(lambda: next(pooling), None):
            (out if to_host else ring).extend(to_ring.push(word, last))
        assert not (host or ring or steps), "words are left over"
        return self.stream(out, 32 if layers[-1]["raw"] else self.npu.kfp, len(payloads), bits)
