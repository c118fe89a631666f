"""Code that the tests of all processing elements share: the convolver that feeds them, and the rules that all keep."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.convolver import processing_element

from .bench import Bench


@dataclass(frozen=True)
class Beat:
    """Inputs of a PE in a cycle."""

    features: int
    weights: int
    first: bool
    last: bool
    code: int = 0


def play(bench: Bench, name: str, npu: Npu, beats: Sequence[Beat | None]) -> list[int]:
    """``result`` in every cycle; beats one a cycle, None is a cycle without. Control comes as late as the convolver
    gives it; noise where it means nothing."""
    _, latency, begins = processing_element(npu)
    draw = random.Random(0)
    shown = []
    slot = 0
    several = npu.array.accumulators > 1
    noise = {port: bench.widths[f"{name}_{port}"] for port in ("features", "weights")}
    at: list[Beat | None] = [*beats, *[None] * (latency + 3)]
    for t, beat in enumerate(at):
        begin = at[t - begins] if t >= begins else None
        end = at[t - latency + 1] if t >= latency - 1 else None
        given = {port: getattr(beat, port) if beat else draw.getrandbits(bits) for port, bits in noise.items()}
        given["valid"] = int(begin is not None)
        if several or npu.array.reducer.collects:
            given["first"] = int(begin.first) if begin else draw.getrandbits(1)
        else:
            following = at[t + 1 - begins] if begins <= t + 1 < len(at) + begins else None
            given["clear"] = int(following is not None and following.first)
        if several:
            before, slot = slot, (slot + int(begin is not None and begin.first)) % npu.array.accumulators
            given |= {"slot": slot, "drain_slot": before}
        elif npu.array.reducer.collects:
            given["last"] = int(end is not None and end.last)
        else:
            given["last"] = int(end.last) if end else draw.getrandbits(1)  # without valid it means nothing
        if npu.code_bits:
            given["code"] = end.code if end else draw.getrandbits(npu.code_bits)
        bench.set(**{f"{name}_{port}": value for port, value in given.items()})
        shown.append(bench[f"{name}_result"])
        bench.tick()
    return shown


def ends(npu: Npu, beats: Sequence[Beat | None]) -> list[int]:
    """Cycles in which the results of windows must be there."""
    latency = processing_element(npu)[1]
    return [t + latency for t, beat in enumerate(beats) if beat and beat.last]


def check(bench: Bench, name: str, npu: Npu, beats: Sequence[Beat], results: Sequence[int]) -> None:
    """Beats one a cycle, and none between windows: each result holds from its time to that of the next one, where a PE
    has one accumulator."""
    shown = play(bench, name, npu, beats)
    at = ends(npu, beats)
    assert [shown[t] for t in at] == list(results)
    if npu.array.accumulators == 1:
        for (begin, end), value in zip(pairwise([*at, len(shown)]), results):
            assert set(shown[begin:end]) == {value}, f"cycle {begin}"


def check_gaps(bench: Bench, name: str, npu: Npu, beats: Sequence[Beat], results: Sequence[int]) -> None:
    """Cycles without a beat, in windows and between them, change nothing."""
    draw = random.Random(2)
    spread = list[Beat | None]()
    for beat in beats:
        spread += [None] * draw.choice([0, 0, 0, 1, 3]) + [beat]
    shown = play(bench, name, npu, spread)
    assert [shown[t] for t in ends(npu, spread)] == list(results)
