"""Window former: golden's taps of every window, in the lanes that the compiler counts on, for many shapes in one module
an engine; stalls on both sides; cycles as the flow model has them."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.window_former import WindowFormer
from bitloom.hls_gen.compiler.rows.window_former import former_values
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.lanes import UNUSED, plane_order
from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.former.window_former import window_former
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.virtual.sim import lint

from .bench import Bench, Sink, Source, run

FORMER = {"window_former": True, "former_channels": 4, "former_column": 20, "former_columns": 10, "former_line": 20}
INTEGER = Npu.of(engine="integer", feature_bits=5, weight_bits=4, shift_bits=0, kfp=7, kgp=2, acc_bits=32, **FORMER)
NPUS = {
    "integer": INTEGER,
    "planes": Npu.of(kfp=23, kgp=2, planes=4, **{**FORMER, "former_column": 12, "former_columns": 5}),
    "bits": Npu.of(kfp=9, kgp=2, **{**FORMER, "former_line": 80}),
    "granules": INTEGER.changed(former_channels=6, former_column=18, former_granule=2),
    "granules_of_bits": Npu.of(
        kfp=9, kgp=2, **{**FORMER, "former_channels": 8, "former_column": 24, "former_granule": 4}
    ),
    "ahead": INTEGER.changed(former_ahead=1),
    "ahead_of_bits": Npu.of(kfp=9, kgp=2, **FORMER, former_ahead=1),
    "one_word": Npu.of(kfp=48, kgp=2, planes=3, **{**FORMER, "former_column": 6, "former_columns": 2}),
    "least": Npu.of(kfp=1, kgp=1, **{**FORMER, "former_channels": 1, "former_column": 1, "former_columns": 1}),
}
"""The windows of ``one_word`` and ``least`` have a word each, so that their formers don't count words."""
QUICK = ("ahead", "planes", "granules", "one_word")


def shape(npu: Npu, rng: random.Random) -> FormedWindows:
    """Windows that the former can make, of any kernel, stride, padding and size, some at the far ends not wanted."""
    sizes = present(npu.former_sizes)
    channels = sizes.granule * min(rng.randint(1, sizes.channels // sizes.granule) for _ in range(2))
    kernel = (
        rng.randint(1, min(10, present(npu.former_sizes).column // channels)),
        rng.randint(1, present(npu.former_sizes).columns),
    )
    padding = tuple(rng.randrange(0, kernel[side % 2]) for side in range(4))
    stride = rng.randint(1, 4), rng.randint(1, 4)
    height, width = (rng.randint(max(1, kernel[k] - padding[k] - padding[k + 2]), 14) for k in (0, 1))
    window = Window(kernel=kernel, stride=stride, padding=padding)
    packed = rng.random() < 0.7
    most = sizes.channels // channels if packed and npu.engine == "integer" else 1
    together = max(n for n in range(1, min(stride[0], kernel[0], most) + 1) if stride[0] % n == 0)
    rows, columns = (rng.randint(max(1, most - 1), most) for most in window.output_size(height, width))
    size = {"height": height, "width": width, "channels": channels, "rows": rows, "columns": columns}
    lanes = {"column_lanes": present(npu.former_sizes).column, "word_lanes": npu.array.plane_lanes}
    return FormedWindows(**size, **lanes, window=window, packed=packed, together=together, ahead=bool(sizes.ahead))


def shapes(npu: Npu, count: int) -> list[FormedWindows]:
    rng = random.Random(npu.array.kfp)
    windows = list[FormedWindows]()
    while len(windows) < count:
        one = shape(npu, rng)
        one = one.upright if one.together == 1 and present(npu.former_sizes).column >= one.width * one.channels else one
        fits = all(need <= npu.value(name) for name, need in one.needs().items())
        fits &= one.tap_lanes <= present(npu.former_sizes).column and one.position_channels <= one.word_lanes
        if one.countable and fits:
            windows.append(one)
    return windows


def packed(lanes: np.ndarray, bits: int) -> int:
    return sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(lanes))


def frame_words(npu: Npu, formed: FormedWindows, image: np.ndarray) -> list[int]:
    """Positions side by side, row after row; a position has some rows of the map, of which those beside it are 0."""
    rows, columns = formed.sent
    above = formed.window.padding[0] - formed.lead[0] * formed.together
    below = max(0, rows * formed.together - above - formed.height)
    padded = np.pad(image, ((above, below), (0, 0), (0, 0)))[: rows * formed.together, :columns]
    positions = padded.reshape(rows, formed.together, columns, -1).swapaxes(1, 2).reshape(rows * columns, -1)
    together = formed.word_positions
    return [
        packed(positions[first : first + together].ravel(), npu.former_lane_bits)
        for first in range(0, len(positions), together)
    ]


def windows(formed: FormedWindows, image: np.ndarray) -> np.ndarray:
    """(words of all windows, lanes): golden's taps, -1 in lanes that have none."""
    window = formed.window
    flat = np.concatenate([image.reshape(-1, formed.channels), np.zeros((1, formed.channels), np.int64)])
    taps = flat[window.positions(formed.height, formed.width)]  # (windows, taps, channels)
    grid = taps.reshape(*window.output_size(formed.height, formed.width), -1)[: formed.rows, : formed.columns]
    lanes = np.pad(grid.reshape(formed.rows * formed.columns, -1), ((0, 0), (0, 1)), constant_values=UNUSED)
    return lanes[:, formed.layout()].reshape(-1, formed.word_lanes)


def word(npu: Npu, values: np.ndarray) -> int:
    """The array's word for a word of values, which are below 0 where there is no tap."""
    if not npu.array.planes:
        return packed(np.maximum(values, 0), npu.former_lane_bits)
    used = values != UNUSED
    bits = []
    for plane in plane_order(npu.array.planes):
        bits += (used if plane == npu.array.planes else used & (values >> plane & 1 == 1)).tolist()
    return packed(np.array(bits), 1)


@dataclass
class Always:
    """A source whose words are always there."""

    word = (Stamps("nothing"), 0)
    cycles: list[int] = field(default_factory=list)

    def next(self) -> int:
        return 0

    def taken(self, cycle: int) -> None:
        self.cycles.append(cycle)


def cycles(formed: FormedWindows, frames: int) -> tuple[list[int], list[int]]:
    """Cycles after the start in which words come and leave, by the flow model."""
    source = Always()
    arrivals = list[int]()
    former = WindowFormer(source, formed, frames)
    while (cycle := former.next()) is not None:
        arrivals.append(cycle)
        former.taken(cycle)
    return source.cycles, arrivals


def check(built: Bench, npu: Npu, formed: FormedWindows, seed: int, stall: float) -> None:
    """Two frames."""
    rng = np.random.default_rng(seed)
    bits = npu.former_lane_bits
    images = rng.integers(0, 1 << bits, (2, formed.height, formed.width, formed.channels))
    built.set(**former_values(formed, npu))
    source = Source(built, "in_", [{"data": w} for x in images for w in frame_words(npu, formed, x)], stall, seed)
    wanted = np.concatenate([windows(formed, image) for image in images])
    sink = Sink(built, "out_", expect=len(wanted), stall=stall, seed=seed + 1)
    built.reset()
    start = built.cycle
    run(built, source, sink)
    if npu.engine == "integer":  # lanes without a tap have weight 0, and may be anything
        mask = [packed(np.where(values == UNUSED, 0, -1), bits) for values in wanted]
    else:
        mask = [-1] * len(wanted)
    words = [value & keep for value, keep in zip(sink.values, mask)]
    assert words == [word(npu, values) for values in wanted], formed
    assert len(source.taken) == len(source.items)
    if not stall:
        seen = tuple([cycle - start for cycle in agent.taken] for agent in (source, sink))
        assert seen == cycles(formed, len(images)), formed


def form(name: str, count: int) -> None:
    npu = NPUS[name]
    with Bench(window_former(Library(32), npu)) as built:
        for k, formed in enumerate(shapes(npu, count)):
            check(built, npu, formed, k, stall=(0, 0.4)[k % 2])


@pytest.mark.parametrize("name", QUICK)
def test_windows(name: str) -> None:
    form(name, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", NPUS)
def test_many_windows(name: str) -> None:
    form(name, 400)


def test_words_pass_while_it_is_off() -> None:
    with Bench(window_former(Library(32), INTEGER)) as built:
        built.set(**{name: 0 for name, _ in former_fields(INTEGER)})
        built.reset()
        given = [random.Random(k).getrandbits(35) for k in range(40)]
        source = Source(built, "in_", [{"data": w} for w in given], 0.3)
        sink = Sink(built, "out_", expect=len(given), stall=0.3)
        run(built, source, sink)
        assert sink.values == given
        assert sink.taken == source.taken  # wires alone


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NPUS)
def test_lint(name: str) -> None:
    modules = window_former(Library(32), NPUS[name]).modules()
    assert lint("\n".join(modules.values()), top="window_former") == []
