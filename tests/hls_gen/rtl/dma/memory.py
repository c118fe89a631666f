"""Memory behind the DMA's two AXI4 ports.

The memory checks what the AMBA AXI specification asks of a master, and what AXI3 and the DMA's own header ask besides:
requests and words stay until they are taken; bursts of at most 16 beats that count up by whole words, inside of 4 KB;
as many words as a burst says, the last one marked; no burst that is stopped for want of room or of words.
"""

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.dma import BURST_BEATS, MOST_BURSTS

from ..bench import Agent, Bench

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass
class Pace:
    """How a memory answers."""

    stall: float = 0.0
    """Chance that a channel pauses in a cycle."""
    latency: int = 3
    """Cycles from a request to its first answer."""
    patient: bool = False
    """Takes the address of a write only when a word of it is offered or was taken, as the specification allows."""


class Memory(Agent):
    """Memory of words: those that were not written hold a hash of their address."""

    def __init__(self, bench: Bench, word_bytes: int, pace: Pace, seed: int = 0):
        self.bench = bench
        self.bytes = word_bytes
        self.pace = pace
        self.random = random.Random(seed)
        self.words: dict[int, int] = {}
        self.refuses: Mapping[int, int] = {}
        """Answer of each byte address whose word is refused."""
        self.reads: deque[tuple[int, int, int]] = deque()
        """Cycle from which on a word may come, its address, and 1 for the last one of its burst."""
        self.bursts: list[tuple[str, int, int]] = []
        """All bursts: "read" or "write", byte address, beats."""
        self.addresses: deque[tuple[int, int]] = deque()
        self.datas: deque[tuple[int, int]] = deque()
        """addresses, datas: writes whose other half has not come: (byte address, beats), (word, last)."""
        self.answers: deque[tuple[int, int]] = deque()
        """Cycle from which on a write is answered, and how."""
        self.held: dict[str, tuple[int, ...]] = {}
        self.offers = {"r": False, "b": False}

    def word(self, address: int) -> int:
        """The word at a byte address."""
        return self.words.get(address, random.Random(address).getrandbits(8 * self.bytes))

    def _ready(self) -> bool:
        return self.random.random() >= self.pace.stall

    def drive(self) -> None:
        bench = self.bench
        bench.set(m_axi_mm2s_arready=self._ready(), m_axi_s2mm_wready=self._ready())
        waits = self.pace.patient and not (self.datas or bench["m_axi_s2mm_wvalid"])
        bench["m_axi_s2mm_awready"] = self._ready() and not waits
        for channel, queue in (("r", self.reads), ("b", self.answers)):
            due = bool(queue) and queue[0][0] <= bench.cycle
            self.offers[channel] = due and (self.offers[channel] or self._ready())
        bench.set(m_axi_mm2s_rvalid=self.offers["r"], m_axi_s2mm_bvalid=self.offers["b"])
        noise = self.random.getrandbits
        bench.set(m_axi_mm2s_rdata=noise(8 * self.bytes), m_axi_mm2s_rresp=noise(2), m_axi_mm2s_rlast=noise(1))
        bench["m_axi_s2mm_bresp"] = noise(2)
        if self.offers["r"]:
            _, address, last = self.reads[0]
            response = self.refuses.get(address, OKAY)
            bench.set(m_axi_mm2s_rdata=self.word(address), m_axi_mm2s_rlast=last, m_axi_mm2s_rresp=response)
        if self.offers["b"]:
            bench["m_axi_s2mm_bresp"] = self.answers[0][1]

    def look(self) -> None:
        bench = self.bench
        for side, channel, names in (
            ("mm2s", "ar", ("addr", "len", "size", "burst", "cache", "prot")),
            ("s2mm", "aw", ("addr", "len", "size", "burst", "cache", "prot")),
            ("s2mm", "w", ("data", "strb", "last")),
        ):
            prefix = f"m_axi_{side}_{channel}"
            offer = tuple(bench[prefix + name] for name in names) if bench[prefix + "valid"] else None
            if channel in self.held:
                assert offer == self.held.pop(channel), f"{prefix}: an offer must stay until it is taken"
            if offer is not None and not bench[prefix + "ready"]:
                self.held[channel] = offer
            elif offer is not None:
                getattr(self, f"_take_{channel}")(*offer)
        if self.offers["r"]:
            assert bench["m_axi_mm2s_rready"], "the bus was stopped"
            self.reads.popleft()
            self.offers["r"] = False
        if self.offers["b"]:
            assert bench["m_axi_s2mm_bready"], "the bus was stopped"
            self.answers.popleft()
            self.offers["b"] = False

    def _burst(self, kind: str, address: int, less_1: int, size: int, burst: int, cache: int, prot: int) -> int:
        beats = less_1 + 1
        assert beats <= BURST_BEATS
        assert 1 << size == self.bytes
        assert address % self.bytes == 0
        assert (address + beats * self.bytes - 1) >> 12 == address >> 12, "a burst crossed a boundary of 4 KB"
        assert (burst, cache, prot) == (1, 3, 0)
        self.bursts.append((kind, address, beats))
        return beats

    def _take_ar(self, address: int, *shape: int) -> None:
        beats = self._burst("read", address, *shape)
        due = self.bench.cycle + self.pace.latency
        self.reads += [(due, address + k * self.bytes, int(k == beats - 1)) for k in range(beats)]
        assert sum(last for *_, last in self.reads) <= MOST_BURSTS

    def _take_aw(self, address: int, *shape: int) -> None:
        self.addresses.append((address, self._burst("write", address, *shape)))
        self._write()

    def _take_w(self, word: int, strobes: int, last: int) -> None:
        assert strobes == (1 << self.bytes) - 1
        self.datas.append((word, last))
        self._write()

    def _write(self) -> None:
        """Write bursts whose address and words are there."""
        while self.addresses and len(self.datas) >= self.addresses[0][1]:
            address, beats = self.addresses.popleft()
            answer = OKAY
            for k in range(beats):
                word, last = self.datas.popleft()
                assert last == (k == beats - 1)
                place = address + k * self.bytes
                answer = answer or self.refuses.get(place, OKAY)
                if place not in self.refuses:
                    self.words[place] = word
            self.answers.append((self.bench.cycle + self.pace.latency, answer))

    @property
    def quiet(self) -> bool:
        """Whether no access is under way or waits."""
        return not (self.reads or self.addresses or self.datas or self.answers or self.held)
