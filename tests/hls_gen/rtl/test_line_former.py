"""Line former: golden's taps of the lines of windows, layer after layer, for many shapes in one module; stalls on both
sides; cycles as the flow model has them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.line_former import LineFormer
from bitloom.hls_gen.compiler.flow.streams import TupleMemory
from bitloom.hls_gen.compiler.rows.line_former import line_values
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.line_former import line_former
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec
from bitloom.overlay.virtual.sim import lint

from .bench import Bench, Sink, Source, load, pack, run

SIZES = {"pool_tuple_words": 6, "windows": 400, "layers": 8, "pool_words": 16, "input_words": 400}
KEPT = {"pool_line_words": 60}
INTEGER = Npu.of(
    engine="integer", feature_bits=5, weight_bits=4, shift_bits=0, kfp=8, kgp=2, acc_bits=32, pfp=2, **SIZES
)
ARRAY = INTEGER.changed(kfp=6, line_taps=3, position_words=6)
NPUS = {
    "three": INTEGER.changed(pool_line_taps=3),
    "two": INTEGER.changed(pool_line_taps=2, pfp=1),
    "two_lines": INTEGER.changed(pool_line_taps=3, pool_lines=2, **KEPT),
    "lines_alone": INTEGER.changed(pool_lines=3, pfp=1, **KEPT),
    "lines_of_bits": Npu.of(kfp=9, kgp=2, pfp=3, pool_line_taps=2, pool_lines=4, **SIZES, **KEPT),
    "shared_lanes": INTEGER.changed(pool_line_taps=3, pool_lane_lines=2, **KEPT),
    "shared_alone": INTEGER.changed(pfp=4, pool_lane_lines=4, depthwise=True, **KEPT),
    "shared_below": INTEGER.changed(pool_line_taps=2, pool_lines=2, pfp=4, pool_lane_lines=2, **KEPT),
    "shared_bits": Npu.of(kfp=9, kgp=2, pfp=6, pool_line_taps=2, pool_lane_lines=3, **SIZES, **KEPT),
    "seven": INTEGER.changed(pool_line_taps=7, depthwise=True),
    "bits": Npu.of(kfp=9, kgp=2, pfp=3, pool_line_taps=4, **SIZES),
    "array": ARRAY,
    "array_of_maps": ARRAY.changed(line_taps=2, inlets=("ring",), outlets=("ring", "host"), pool=False),
    "array_of_bits": Npu.of(kfp=12, kgp=2, line_taps=4, position_words=5, **SIZES),
}
Layer = tuple[FormedLines, int]
"""The lines that are formed, and positions of a line of the map."""


def spec_of(name: str) -> SequencerSpec:
    """The sequencer in front of which the former stands."""
    npu = NPUS[name]
    return SequencerSpec(npu.array_sequencer if name.startswith("array") else present(npu.pool_sequencer))


def layers(spec: SequencerSpec, rng: random.Random) -> list[Layer]:
    """Layers of any kernel, stride, padding and size, some with windows at the far end that are not wanted; layers
    whose words are put side by side, and layers whose words are handed on, also as wide as they leave."""
    drawn = list[Layer]()
    flags = spec.sequencer.line_flags
    rows, columns = spec.sequencer.beat.most_rows, spec.sequencer.beat.columns
    while len(drawn) < 8:
        words = rng.randint(1, 5)
        beside = frozenset({"lowest"} if "lowest" in flags and rng.random() < 0.5 else ())
        kind = rng.random()
        if kind < 0.3:
            whole = frozenset({"whole"} if "whole" in flags and kind < 0.2 else ())
            drawn.append((FormedLines.straight(rng.randint(1, 9), beside | whole), 1))
            continue
        if kind < 0.5:
            gathered = FormedLines.gathered(rng.randint(1, 5), rng.randint(1, 9), columns)
            drawn.append((gathered, gathered.positions))
            continue
        taps, taken = rng.randint(1, columns), rng.randint(1, rows)
        top = rng.randrange(taken)
        line_stride = rng.randint(1, taken)
        lines = (rng.randint(1, 4) - 1) * line_stride + taken - top
        left, right = rng.randrange(taps), rng.randrange(taps)
        stride = rng.randint(1, taps)
        width = rng.randint(max(1, taps - left - right), 12)
        most = (width + left + right - taps) // stride + 1
        windows = rng.randint(max(1, most - 1), most)
        steps = (windows - 1) * stride + taps - left
        window = Window(kernel=(taken, taps), stride=(line_stride, stride), padding=(top, left, 0, right))
        taken = {"words": words, "lines": lines, "positions": min(width, steps)}
        drawn.append((FormedLines(**taken, window=window, windows=windows, flags=beside), width))
    return drawn


def lanes(spec: SequencerSpec) -> int:
    """Lanes of a word that comes."""
    return spec.sequencer.map_bits // bits(spec)


def windows(spec: SequencerSpec, layer: Layer, tuples: np.ndarray) -> np.ndarray:
    """(words, lanes): golden's taps of ``tuples``, (lines, width, words, lanes), those of a window side by side."""
    formed, width = layer
    if "whole" in formed.flags:
        return tuples.reshape(len(tuples), -1)
    lowest = -(1 << bits(spec) - 1) * ("lowest" in formed.flags)
    (rows, columns), (_, stride), (top, left, _, _) = formed.window.kernel, formed.window.stride, formed.window.padding
    right = max(0, (formed.windows - 1) * stride + columns - left - width)
    window = replace(formed.window, padding=(top, left, 0, right))
    flat = tuples.reshape(-1, *tuples.shape[2:])
    beside = np.full_like(flat[:1], lowest)
    places = window.positions(len(tuples), width)
    places = places.reshape(-1, window.output_size(len(tuples), width)[1], window.taps)[:, : formed.windows]
    taps = np.concatenate([flat, beside])[places]  # (lines, windows, taps, words, lanes)
    beat = spec.sequencer.beat
    shares = beat.lane_lines if rows > beat.rows else 1
    grid = np.full((*taps.shape[:2], beat.rows * shares, beat.columns, *taps.shape[3:]), lowest)
    grid[:, :, -rows:, -columns:] = taps.reshape(*taps.shape[:2], rows, columns, *taps.shape[3:])
    of_lines = grid[..., : lanes(spec) // shares].reshape(*taps.shape[:2], beat.rows, shares, *grid.shape[3:5], -1)
    side_by_side = of_lines[:, :, :, ::-1].transpose(0, 1, 5, 2, 4, 3, 6)  # the line at hand has the lowest lanes
    return side_by_side.reshape(-1, spec.sequencer.word_bits // bits(spec))


def bits(spec: SequencerSpec) -> int:
    """Width of a feature."""
    return spec.npu.array.feature_bits


def packed(lanes: np.ndarray, w: int) -> int:
    return sum((int(v) & ((1 << w) - 1)) << k * w for k, v in enumerate(lanes))


def row(spec: SequencerSpec, formed: FormedLines) -> int:
    """The layer's row of memory ``lines``."""
    return pack(spec.memory("lines"), line_values(formed, spec.sequencer))


def cycles(drawn: list[Layer], words: int) -> tuple[list[int], list[int]]:
    """Cycles in which words come and leave, by the flow model, where each comes as soon as it can."""
    left = Stamps("words that leave")
    former = LineFormer(TupleMemory(1 << 20, left, Stamps("room")), [formed for formed, _ in drawn])
    come = list[int]()
    for _ in range(words):
        cycle = former.put(come[-1] + 1 if come else 0)
        assert cycle is not None
        come.append(cycle)
    assert former.flush()
    return come, list(left)


def check(built: Bench, spec: SequencerSpec, seed: int, stall: float) -> None:
    """Two frames of some layers."""
    rng = np.random.default_rng(seed)
    drawn = layers(spec, random.Random(seed))
    load(built, spec.memory("lines"), 0, [row(spec, formed) for formed, _ in drawn])
    built["last_layer"] = len(drawn) - 1
    low = 0 if spec.npu.engine == "binary" else -(1 << bits(spec) - 1)
    given, wanted = list[int](), list[int]()
    for layer in drawn * 2:
        formed, width = layer
        each = spec.sequencer.widest_inlet // bits(spec) if "whole" in formed.flags else lanes(spec)
        tuples = rng.integers(low, low + (1 << bits(spec)), (formed.lines, width, formed.words, each))
        sent = tuples[:, : formed.positions].reshape(-1, each)
        given += [packed(word, bits(spec)) for word in sent]
        wanted += [packed(word, bits(spec)) for word in windows(spec, layer, tuples)]
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


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", NPUS)
def test_lines(name: str) -> None:
    with Bench(line_former(Library(32), spec_of(name))) as built:
        for seed in range(8):
            check(built, spec_of(name), seed, stall=(0, 0.4)[seed % 2])


@pytest.mark.slow
@pytest.mark.parametrize("name", NPUS)
def test_many_lines(name: str) -> None:
    with Bench(line_former(Library(32), spec_of(name))) as built:
        for seed in range(8, 200):
            check(built, spec_of(name), seed, stall=(0, 0.4)[seed % 2])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NPUS)
def test_lint(name: str) -> None:
    modules = line_former(Library(32), spec_of(name)).modules()
    assert lint("\n".join(modules.values()), top=spec_of(name).module("line_former")) == []
