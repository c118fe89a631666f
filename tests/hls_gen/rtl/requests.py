"""Requests to an AXI4-Lite slave ``s_axi`` whose five channels go at their own pace, and what must be answered."""

import random
from collections.abc import Collection, Sequence

from .bench import Bench, Sink, Source

OKAY, SLVERR = 0, 2
ALL_BYTES = 15
Writing = tuple[int, int, int]
"""Address, data and strobes of a write."""


class Requests:
    """Writes and reads; ``draw`` says how often each channel pauses, without it none does."""

    def __init__(
        self, bench: Bench, writes: Sequence[Writing], reads: Sequence[int], draw: random.Random | None = None
    ):
        self.writes = writes
        self.reads = reads

        def pauses() -> dict[str, float]:
            return {"stall": draw.choice([0, 0.3, 0.9, 0.98]), "seed": draw.getrandbits(30)} if draw else {}

        self.address = Source(bench, "s_axi_aw", [{"addr": address} for address, _, _ in writes], **pauses())
        self.data = Source(bench, "s_axi_w", [{"data": word, "strb": bytes_} for _, word, bytes_ in writes], **pauses())
        self.ask = Source(bench, "s_axi_ar", [{"addr": address} for address in reads], **pauses())
        self.answers = Sink(bench, "s_axi_b", ["resp"], len(writes), **pauses())
        self.shown = Sink(bench, "s_axi_r", ["data", "resp"], len(reads), **pauses())
        self.agents = [self.address, self.data, self.ask, self.answers, self.shown]

    def check(self, register: int, before: int, most_cycles: int) -> None:
        """All are answered as they must be; ``register``, which held ``before``, shows what was written whole."""
        for (address, _, strobes), (response,) in zip(self.writes, self.answers.words, strict=True):
            assert response == (OKAY if strobes == ALL_BYTES and address % 4 == 0 else SLVERR), hex(address)
        given = [max(pair) for pair in zip(self.address.taken, self.data.taken)]  # address and data are there
        for k, (address, (value, response)) in enumerate(zip(self.reads, self.shown.words, strict=True)):
            assert response == (SLVERR if address % 4 else OKAY), hex(address)
            assert address % 4 == 0 or value == 0, hex(address)
            begin, end = self.ask.taken[k], self.shown.seen[k]
            assert end - begin <= most_cycles, f"read of 0x{address:X} took {end - begin} cycles"
            held = {before}
            for i, (target, data, strobes) in enumerate(self.writes):
                if target == register and strobes == ALL_BYTES and given[i] < end:
                    held = {data} if self.answers.seen[i] <= begin else held | {data}
            assert address != register or value in held, f"0x{value:X} was not written, or not yet"


def some_writes(draw: random.Random, count: int, register: int, spared: Collection[int]) -> list[Writing]:
    """Writes anywhere, many of them to a register and beside it, many of a part of a word; none whole to ``spared``."""
    writings: list[Writing] = []
    while len(writings) < count:
        address = draw.choice([register, register, register + draw.randrange(4), draw.randrange(1 << 12)])
        strobes = draw.choice([ALL_BYTES, ALL_BYTES, draw.randrange(16)])
        if address not in spared or strobes != ALL_BYTES:
            writings.append((address, draw.getrandbits(32), strobes))
    return writings


def some_reads(draw: random.Random, count: int, register: int) -> list[int]:
    """Reads anywhere, many of a register and of the design's counters."""
    return [draw.choice([register, draw.randrange(0x50, 0x60), draw.randrange(1 << 12)]) for _ in range(count)]
