"""Line former: golden's taps of the lines of windows, layer after layer, for many shapes in one module; stalls on both
sides; cycles as the flow model has them."""

import random

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.flow.former import LineFormer
from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.streams import Ring
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.pool_unit.line_former import line_former
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.virtual.sim import lint

from .bench import Bench, Sink, Source, load, pack, run

SIZES = {"pool_tuple_words": 6, "windows": 400, "layers": 8, "pool_words": 16}
INTEGER = Npu.of(
    engine="integer", feature_bits=5, weight_bits=4, shift_bits=0, kfp=7, kgp=2, acc_bits=32, pfp=2, **SIZES
)
NPUS = {
    "three": INTEGER.changed(pool_line_taps=3),
    "two": INTEGER.changed(pool_line_taps=2, pfp=1),
    "seven": INTEGER.changed(pool_line_taps=7, depthwise=True),
    "bits": Npu.of(kfp=9, kgp=2, pfp=3, pool_line_taps=4, **SIZES),
}
Layer = tuple[FormedLines, int, int]
"""What is formed, words of a tuple, and positions of a line of the map."""


def layers(npu: Npu, rng: random.Random) -> list[Layer]:
    """Layers of any kernel, stride, padding and size, some with windows at the far end that are not wanted; and layers
    whose taps are not formed."""
    drawn = list[Layer]()
    while len(drawn) < 8:
        words = rng.randint(1, 6)
        lowest = npu.engine == "integer" and rng.random() < 0.5
        if rng.random() < 0.3:
            drawn.append((FormedLines.straight(rng.randint(1, 9), lowest=lowest), words, 1))
            continue
        taps = rng.randint(1, present(npu.pool_unit).line_taps)
        left, right, stride = rng.randrange(taps), rng.randrange(taps), rng.randint(1, taps)
        width = rng.randint(max(1, taps - left - right), 12)
        most = (width + left + right - taps) // stride + 1
        windows = rng.randint(max(1, most - 1), most)
        steps = (windows - 1) * stride + taps - left
        formed = FormedLines(
            lines=rng.randint(1, 4), positions=min(width, steps), taps=taps, stride=stride, lead=left, windows=windows,
            lowest=lowest,
        )  # fmt: skip
        drawn.append((formed, words, width))
    return drawn


def windows(npu: Npu, layer: Layer, tuples: np.ndarray) -> np.ndarray:
    """(words, lanes): golden's taps of ``tuples``, (lines, width, words, pfp), those of a line side by side."""
    formed, words, width = layer
    pool_unit = present(npu.pool_unit)
    lowest = -(1 << npu.array.feature_bits - 1) * formed.lowest
    right = max(0, (formed.windows - 1) * formed.stride + formed.taps - formed.lead - width)
    window = Window(kernel=(1, formed.taps), stride=(1, formed.stride), padding=(0, formed.lead, 0, right))
    places = window.positions(1, width)[: formed.windows]
    beside = np.full((len(tuples), 1, words, pool_unit.pfp), lowest)
    lanes = np.concatenate([tuples, beside], axis=1)[:, places]  # (lines, windows, taps, words, pfp)
    whole = np.full((*lanes.shape[:2], pool_unit.line_taps - formed.taps, *lanes.shape[3:]), lowest)
    return np.concatenate([whole, lanes], axis=2).transpose(0, 1, 3, 2, 4).reshape(-1, npu.pool_line_bits // bits(npu))


def bits(npu: Npu) -> int:
    """Width of a feature."""
    return npu.array.feature_bits


def packed(lanes: np.ndarray, w: int) -> int:
    return sum((int(v) & ((1 << w) - 1)) << k * w for k, v in enumerate(lanes))


def row(npu: Npu, layer: Layer) -> int:
    """The layer's row of memory ``pool_lines``."""
    formed, words, _ = layer
    fields = {
        "words_minus_1": words - 1, "lines_minus_1": formed.lines - 1, "steps_minus_1": formed.steps - 1,
        "positions_minus_1": formed.positions - 1, "first": formed.first, "stride_minus_1": formed.stride - 1,
        "taps_before": (1 << formed.taps - 1) - 1,
        **({"lowest": int(formed.lowest)} if npu.engine == "integer" else {}),
    }  # fmt: skip
    return pack(memory_of(npu, "pool_lines"), fields)


def cycles(drawn: list[Layer], words: int) -> tuple[list[int], list[int]]:
    """Cycles in which words come and leave, by the flow model, where each comes as soon as it can."""
    left = Stamps("words that leave")
    former = LineFormer(Ring(1 << 20, left, Stamps("room")), [(words, formed) for formed, words, _ in drawn])
    come = list[int]()
    for _ in range(words):
        cycle = former.put(come[-1] + 1 if come else 0)
        assert cycle is not None
        come.append(cycle)
    assert former.flush()
    return come, list(left)


def check(built: Bench, npu: Npu, seed: int, stall: float) -> None:
    """Two frames of some layers."""
    rng = np.random.default_rng(seed)
    drawn = layers(npu, random.Random(seed))
    load(built, memory_of(npu, "pool_lines"), 0, [row(npu, layer) for layer in drawn])
    built["last_layer"] = len(drawn) - 1
    low = 0 if npu.engine == "binary" else -(1 << bits(npu) - 1)
    given, wanted = list[int](), list[int]()
    for layer in drawn * 2:
        formed, words, width = layer
        tuples = rng.integers(low, low + (1 << bits(npu)), (formed.lines, width, words, present(npu.pool_unit).pfp))
        sent = tuples[:, : formed.positions].reshape(-1, present(npu.pool_unit).pfp)
        given += [packed(word, bits(npu)) for word in sent]
        wanted += [packed(word, bits(npu)) for word in windows(npu, layer, tuples)]
    built.reset()
    source = Source(built, "in_", [{"data": word} for word in given], stall, seed)
    sink = Sink(built, "out_", expect=len(wanted), stall=stall, seed=seed + 1)
    run(built, source, sink)
    assert sink.values == wanted, drawn
    assert len(source.taken) == len(given)
    if not stall:
        come, left = cycles(drawn, len(given))
        start = source.taken[0] - come[0]
        assert [cycle - start for cycle in source.taken] == come, drawn
        assert [cycle - start for cycle in sink.taken] == left, drawn


@pytest.mark.parametrize("name", NPUS)
def test_lines(name: str) -> None:
    with Bench(line_former(Library(32), NPUS[name])) as built:
        for seed in range(8):
            check(built, NPUS[name], seed, stall=(0, 0.4)[seed % 2])


@pytest.mark.slow
@pytest.mark.parametrize("name", NPUS)
def test_many_lines(name: str) -> None:
    with Bench(line_former(Library(32), NPUS[name])) as built:
        for seed in range(8, 200):
            check(built, NPUS[name], seed, stall=(0, 0.4)[seed % 2])


@pytest.mark.parametrize("name", NPUS)
def test_lint(name: str) -> None:
    modules = line_former(Library(32), NPUS[name]).modules()
    assert lint("\n".join(modules.values()), top="line_former") == []
