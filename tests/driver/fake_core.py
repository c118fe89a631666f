"""The design of `design.py` as Python: packets in, results out, registers. One 32-bit word at a time."""

import numpy as np

from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map

MASK = 0xFFFFFFFF


class FakeCore:
    """``give(word, last)`` is the input, ``out`` the queue of (word, last) that ``take`` empties.

    Faults, to be set by tests:
    stuck : takes no input.  mute : computes, but gives no results.  early : words of a frame before a wrong tlast.
    constants : offset -> value to be read instead.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.offsets = {r.offset: r.name for r in manifest.registers}
        self.stuck = self.mute = False
        self.early: int | None = None
        self.constants: dict[int, int] = {}
        self.control = self.irq_enable = 0
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        self.regs: dict[str, int] = {}
        self.words = [0, 0]
        self.memory: dict[int, dict[int, int]] = {m.id: {} for m in memory_map(self.manifest.npus[0])}
        self.head: list[int] = []
        self.payload: list[int] = []
        self.due = 0
        self.error = self.loaded = 0
        self.out: list[tuple[int, bool]] = []
        self.irq_status = self.owner = self.number = 0
        self.signature = 0xFFFFFFFF

    # Registers

    def read(self, offset: int) -> int:
        self.count("CYCLES", 10)
        name = self.offsets.get(offset, "")
        if offset in self.constants:
            return self.constants[offset]
        digest = self.manifest.digest
        fixed = {f"DIGEST_{i}": int(digest[8 * i : 8 * i + 8], 16) for i in range(4)}
        fixed |= {"IDENT": 0x424C4D31, "VERSION": 0x000200, "GEOMETRY": 1 | self.manifest.stream_bits << 8}
        fixed |= {"CONTROL": self.control, "STATUS": int(not self.head) | bool(self.error) << 1 | self.loaded << 2}
        fixed |= {"SIGNATURE": self.signature, "OWNER": self.owner, "ERROR_CODE": self.error}
        fixed |= {"NPU0_STATE": len(self.payload), "IRQ_ENABLE": self.irq_enable, "IRQ_STATUS": self.irq_status}
        return fixed.get(name, self.regs.get(name, 0))

    def write(self, offset: int, value: int) -> None:
        name = self.offsets.get(offset, "")
        if name == "CONTROL":
            self.control = value & 1
            if value & 2:
                self.resets += 1
                self.reset()
            if value & 4:
                for key in [k for k in self.regs if not k.startswith("ERROR")]:
                    self.regs[key] = 0
        elif name == "OWNER":
            self.owner = value & 0xFFFF
        elif name == "IRQ_ENABLE":
            self.irq_enable = value & 3
        elif name == "IRQ_STATUS":
            self.irq_status &= ~value

    def count(self, name: str, by: int = 1) -> None:
        self.regs[name] = (self.regs.get(name, 0) + by) & MASK

    # Streams

    def ready(self) -> bool:
        return not self.stuck and len(self.out) < 64

    def give(self, word: int, last: bool) -> None:
        self.count("CYCLES")
        self.words[0] += 1
        if self.words[0] % self.manifest.stream_words == 0:
            self.count("WORDS_IN")
        if self.error:
            return
        if len(self.head) < 4:
            self.head.append(word)
            if len(self.head) == 4:
                self.check_header()
        else:
            self.payload.append(word)
        if self.error:
            return
        complete = len(self.head) == 4 and len(self.payload) == self.due
        if last and not complete:
            self.fail(7)
        elif complete:
            self.execute()
            self.head, self.payload = [], []

    def take(self) -> tuple[int, bool]:
        self.words[1] += 1
        if self.words[1] % self.manifest.stream_words == 0:
            self.count("WORDS_OUT")
        word, last = self.out.pop(0)
        self.irq_status |= int(last)
        return word, last

    def fail(self, code: int) -> None:
        head = [*self.head, 0, 0, 0, 0]
        self.error = code
        self.irq_status |= 2
        self.regs |= {"ERROR_HEADER": head[0], "ERROR_ADDRESS": head[1], "ERROR_LENGTH": head[2]}
        self.out = []

    def check_header(self) -> None:
        a, first, count, check = self.head
        kind = a & 15
        npu, memory = a >> 16 & 255, a >> 8 & 255
        depths = {m.id: m.depth for m in memory_map(self.manifest.npus[0])}
        if a >> 24 != 0xB1 or check != ~(a ^ first ^ count) & MASK:
            return self.fail(1)
        if kind not in (1, 2):
            return self.fail(2)
        if npu >= 1:
            return self.fail(3)
        if kind == 1 and memory not in depths:
            return self.fail(4)
        if kind == 1 and not (count >= 1 and first + count <= depths[memory]):
            return self.fail(5)
        if kind == 2 and not self.loaded:
            return self.fail(8)
        if kind == 2 and first != self.signature:
            return self.fail(10)
        if kind == 2 and count & 0xFFFFFF != self.field("network", "frame_words"):
            return self.fail(6)
        if kind == 2 and count >> 24 != self.number % 256:
            return self.fail(9)
        count &= 0xFFFFFF
        if kind == 1:
            self.owner = self.number = 0
        else:
            self.number += 1
        width = self.width(memory)
        self.due = self.manifest.frame_payload(count) if kind == 2 else count * width
        self.payload = []
        return None

    def width(self, memory: int) -> int:
        return self.manifest.padded(next((m.width for m in memory_map(self.manifest.npus[0]) if m.id == memory), 0))

    def field(self, memory: str, name: str) -> int:
        spec = self.manifest.memory(0, memory)
        return spec.field(name).of(self.memory[spec.id].get(0, 0))

    def row(self, memory: str, row: int) -> int:
        return self.memory[self.manifest.memory(0, memory).id][row]

    def execute(self) -> None:
        a, first, count, check = self.head
        count &= 0xFFFFFF
        if a & 15 == 1:
            for word in (check, *self.payload):  # a signature register, bit by bit
                top = self.signature >> 31
                self.signature = (self.signature << 1 & MASK) ^ word ^ (top << 22 | top << 2 | top << 1 | top)
            memory = a >> 8 & 255
            width = self.width(memory)
            for i in range(count):
                self.memory[memory][first + i] = number(self.payload[i * width : (i + 1) * width])
            self.loaded |= int(memory == 0)
            return
        assert self.control & 1, "a frame came before START"
        bits = self.manifest.stream_bits
        per = self.manifest.stream_bits // 24
        stream = number(self.payload)
        features = 0
        for word in range(count):
            part = stream >> (word // per * bits + word % per * 24) & 0xFFFFFF
            features |= part << (24 * word)
        lanes = 24 * count
        outputs = 3 * self.field("results", "groups_minus_1") + self.field("results", "last_units_minus_1") + 1
        totals = []
        for o in range(outputs):  # a row has 24 weights of each of 3 kernels
            rows = [self.row("kernels", o // 3 * count + word) >> 24 * (o % 3) & 0xFFFFFF for word in range(count)]
            weights = sum(row << 24 * word for word, row in enumerate(rows))
            same = ~(features ^ weights) & ((1 << lanes) - 1)
            totals.append(2 * bin(same).count("1") - self.field("layers", "tap_offset"))
        if self.field("results", "raw"):
            words = [t & MASK for t in totals]
        else:
            limits = [np.uint32(self.row("thresholds", o)).astype(np.int32) for o in range(outputs)]
            words = [sum(int(t >= limit) << i for i, (t, limit) in enumerate(zip(totals, limits)))]
        words += [0] * (-len(words) % self.manifest.stream_words)
        last = bool(a >> 4 & 1)
        if self.early is not None:
            words = words[: self.early]
            last = True
        if not self.mute:
            self.out += [(w, last and i == len(words) - 1) for i, w in enumerate(words)]
        self.count("FRAMES")
        self.count("NPU0_BEATS", outputs * count)
        self.count("CYCLES", outputs * count)


def number(words: list[int]) -> int:
    return sum(w << (32 * i) for i, w in enumerate(words))
