"""Parts of tuples: the pattern with the fewest words that covers what kernel groups need, against a search through all
patterns; the beats and kernel rows of grouped convolutions."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.layout import UNUSED, chunks
from bitloom.hls_gen.compiler.lowered_layers import Multiply, Xnor
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.tuple_parts import TuplePart, tuple_part
from bitloom.hls_gen.design.folding import Folding
from tests.networks import random_integer_model, random_model


def integer_layer(lanes: np.ndarray) -> Multiply:
    """A 1 x 1 convolution with weights of 1 where ``lanes`` (kernels, channels) are."""
    return Multiply(weight=lanes[:, None].astype(np.int64))


def binary_layer(lanes: np.ndarray, *, double: bool) -> Xnor:
    """A 1 x 1 convolution with weights of +1 where ``lanes`` (kernels, channels) are, else 0: two visits."""
    visits = np.stack([lanes, np.ones_like(lanes)], axis=1)[..., None].astype(np.uint8)
    one = np.ones(1, np.int64)
    return Xnor(weight=visits, coefficient=one, visits=2, double=double, tap_offset=lanes.shape[1])


def fewest(needed: np.ndarray) -> int:
    """Words of the shortest part, by trying every pattern word by word."""
    count, words = needed.shape
    for most in range(1, words):
        for groups in range(1, count + 1):
            for step in range(words):
                parts = [range(k // groups * step, k // groups * step + most) for k in range(count)]
                covered = all(set(np.flatnonzero(row)) <= set(part) for part, row in zip(parts, needed))
                if covered and parts[-1].stop <= words:
                    return most
    return words


@pytest.mark.parametrize("seed", range(60))
def test_no_pattern_has_fewer_words(seed):
    rng = np.random.default_rng(seed)
    count, words = int(rng.integers(1, 7)), int(rng.integers(1, 7))
    needed = np.zeros((count, words), bool)
    for k in range(count):  # a run of words around the one that is expected
        at = k * words // count
        needed[k, max(0, at - rng.integers(0, 2)) : at + rng.integers(0, 3)] = True
    layout = chunks(np.arange(words * 3 - 1), 3)
    kernels, lanes = 2 * count - int(rng.integers(0, 2)), np.zeros((2 * count, words * 3 - 1), bool)
    lanes[1::2, ::3] = lanes[::2, ::3] = needed  # one channel of each word
    part, _ = tuple_part(integer_layer(lanes[:kernels]).weighted, layout, 2)
    assert part.words == fewest(needed)
    for first, row in zip(part.firsts(count), needed):
        assert set(np.flatnonzero(row)) <= set(range(first, first + part.words))
        assert first + part.words <= words
    left = part.rows(count, 5, words).reshape(count, 5, part.words)
    expected = [[[k * 5 * words + place * words + part.firsts(count)[k] + w for w in range(part.words)]
                 for place in range(5)] for k in range(count)]  # fmt: skip
    np.testing.assert_array_equal(left, expected)


def test_a_match_in_every_lane_that_is_left_out_must_be_the_same_for_all_kernels():
    """The binary engine takes it off by one offset a layer: a last word with fewer channels keeps its zeros."""
    lanes = np.kron(np.eye(2, dtype=bool), np.ones((4, 4), bool))
    layout = np.arange(8).reshape(2, 4)
    assert tuple_part(binary_layer(lanes, double=True).weighted, layout, 4) == (TuplePart(1, 1, 1), 4)
    assert tuple_part(binary_layer(lanes, double=False).weighted, layout, 4) == (TuplePart(1, 1, 1), 4)
    cut = np.where(layout == 7, UNUSED, layout)
    assert tuple_part(binary_layer(lanes[:, :7], double=True).weighted, cut, 4) == (TuplePart(2), 0)
    assert tuple_part(integer_layer(lanes[:, :7]).weighted, cut, 4)[0] == TuplePart(1, 1, 1)
    odd = np.where(layout % 4 == 3, UNUSED, layout)  # 3 lanes each, of which halves can't be taken off
    assert tuple_part(binary_layer(lanes, double=True).weighted, odd, 4) == (TuplePart(1, 1, 1), 3)
    assert tuple_part(binary_layer(lanes, double=False).weighted, odd, 4) == (TuplePart(2), 0)
    one_visit = replace(binary_layer(lanes, double=True), visits=1)
    assert tuple_part(one_visit.weighted, layout, 4) == (TuplePart(2), 0)  # no weight is 0


INTEGER = Folding(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, kfp=4, kgp=4, pfp=4, ol=2, pool=False)
BINARY = replace(INTEGER, engine="binary", feature_bits=1, weight_bits=1)


@pytest.mark.parametrize(("folding", "accumulators", "beats", "rows"), [
    (INTEGER, 1, (4 * 4 * 2 * 4, 4 * 4 * 9 * 4), (2 * 4, 9 * 4)),
    (BINARY, 1, (4 * 4 * 2 * 4, 4 * 4 * 2 * 9 * 4), (2 * 4, 2 * 9 * 4)),
    (INTEGER, 16, (4 * 4 * 2 * 4, 4 * 4 * 9 * 4 * 4), (2 * 4, 9 * 4 * 4)),  # a word is for all groups
])  # fmt: skip
def test_beats_and_kernel_rows(folding, accumulators, beats, rows):
    """16 channels in 4 words; each of 4 groups of kernels needs one of them, which the NPU that sizing makes reads."""
    integer = folding.engine == "integer"
    weight, acts = (signed(4) if integer else BIPOLAR), []
    for n in range(2):
        acts.append(Requantise(name=f"act_{n}", encoding=signed(4)) if integer else Threshold(name=f"act_{n}"))
    layers = (
        Conv(name="conv_0", out_channels=16, kernel=(1, 1), weight=weight), acts[0],
        GroupedConv(name="conv_1", out_channels=16, groups=4, kernel=(3, 3), weight=weight), acts[1],
    )  # fmt: skip
    source = Map(height=6, width=6, channels=8, encoding=signed(4) if integer else BIPOLAR)
    network = Network(name="n", input=source, layers=layers)
    model = random_integer_model(network, 1, 16) if integer else random_model(network, 1)
    choices = CompileChoices(map_order="raster", dataflow="auto")
    (npu,) = size_memories("n", [model], replace(folding, accumulators=accumulators), choices).npus
    made = plan(model, [npu], choices)
    assert [count * 16 // 36 if n == 0 else count for n, (_, count) in enumerate(made.ideal)] == list(beats)
    assert [len(kernels) for kernels in made.npus[0].kernels] == list(rows)
    assert npu.tuple_parts == (accumulators == 1)
    assert npu.aheads == 2 * npu.tuple_parts


def test_nothing_is_asked_for_where_no_layer_is_grouped():
    layers = (Conv(name="conv_0", out_channels=16, kernel=(1, 1), weight=signed(4)),)
    network = Network(name="n", input=Map(height=6, width=6, channels=8, encoding=signed(4)), layers=layers)
    (npu,) = size_memories("n", [random_integer_model(network, 1, 16)], INTEGER).npus
    assert (npu.tuple_parts, npu.aheads) == (0, 0)
