import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.layers.conv import Conv
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.schedule import schedule
from bitloom.hls_gen.compiler.schedule.stage import Stage
from bitloom.hls_gen.compiler.taps import Taps
from tests.cases import case_map, random_values
from tests.errors import value_error
from tests.hls_gen.compiler.sequencer import image_of, reads
from tests.networks import windows

from .storage import (
    Folded,
    element,
    element_address,
    element_index,
    fold,
    kernel_runs,
    map_run,
    unfold,
    valid_elements,
    window_runs,
)


def names(text: str, *shape: int) -> np.ndarray:
    """Array of words, whose last axis is the fastest."""
    return np.array(text.split()).reshape(shape)


# The examples of spec A4 to A6. Their axes are (x, y, channel), of which y is the faster: windows go down a column.

KERNEL = names("a0 a1 b0 b1 c0 c1 d0 d1", 1, 2, 2, 2)
FEATURES = names("x0 x1 y0 y1 z0 z1 p0 p1 q0 q1 r0 r1", 2, 3, 2)


def test_example_of_a_kernel():
    assert KERNEL[0, 0, 1].tolist() == ["b0", "b1"]
    assert " ".join(kernel_runs(KERNEL)[0]) == "a0 a1 b0 b1 c0 c1 d0 d1"


def test_example_of_windows():
    """Two windows of a map that is 2 wide and 3 high, for a 2 x 2 kernel."""
    first, second = window_runs(FEATURES, Window(kernel=(2, 2)))
    assert " ".join(first) == "x0 x1 y0 y1 p0 p1 q0 q1"
    assert " ".join(second) == "y0 y1 z0 z1 q0 q1 r0 r1"


def test_example_of_the_map():
    """Each element once, also where the windows above use y and q twice."""
    assert " ".join(map_run(FEATURES)) == "x0 x1 y0 y1 z0 z1 p0 p1 q0 q1 r0 r1"


@pytest.mark.parametrize(
    ("word_bits", "words"),
    [
        (4, ["a0 a1 b0 b1", "c0 c1 d0 d1"]),  # the spec's folded words
        (3, ["a0 a1 b0", "b1 c0 c1", "d0 d1"]),  # divides neither the channels nor the run
        (8, ["a0 a1 b0 b1 c0 c1 d0 d1"]),
        (11, ["a0 a1 b0 b1 c0 c1 d0 d1"]),
        (1, ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"]),
    ],
)
def test_example_of_folded_words(word_bits, words):
    run = kernel_runs(KERNEL)[0]
    for i, name in enumerate(run):
        word, bit = element_address(i, word_bits)
        assert words[word].split()[bit] == name


def test_folded_words_as_numbers():
    """Element 0 is the least significant bit; what is left of the last word is 0."""
    assert fold(np.array([1, 0, 1, 1, 0, 0, 0, 1]), 4) == (0b1101, 0b1000)
    assert fold(np.array([1, 0, 1, 1, 0, 0, 0, 1]), 3) == (0b101, 0b001, 0b10)
    assert fold(np.array([1, 0, 1]), 100) == (0b101,)
    assert fold(np.zeros(0, int), 5) == ()


# Any width.

BITS = st.lists(st.integers(0, 1), min_size=1, max_size=80).map(np.array)
WIDTHS = st.integers(1, 97)


@given(run=BITS, word_bits=WIDTHS)
def test_a_folded_run_is_read_back(run, word_bits):
    words = fold(run, word_bits)
    assert all(0 <= word < 1 << word_bits for word in words)
    assert [element(words, i, word_bits) for i in range(len(run))] == run.tolist()
    np.testing.assert_array_equal(unfold(words, len(run), word_bits), run)


@given(runs=st.lists(BITS, max_size=6), word_bits=WIDTHS, aligned=st.booleans())
def test_a_memory_of_many_runs_is_read_back(runs, word_bits, aligned):
    store = Folded(word_bits=word_bits, lengths=tuple(map(len, runs)), aligned=aligned)
    words = store.store(runs)
    assert len(words) == store.depth_words
    for i, run in enumerate(runs):
        np.testing.assert_array_equal(store.read(words, i), run)
        assert store.address(i, 0)[1] == 0 or not aligned
    places = [store.address(i, e) for i, run in enumerate(runs) for e in range(len(run))]
    assert len(set(places)) == len(places), "no two elements share a bit"
    if not aligned:
        assert places == [element_address(i, word_bits) for i in range(len(places))]


def test_runs_that_are_aligned_and_not():
    lengths = (5, 3, 4)
    assert Folded(word_bits=4, lengths=lengths).starts == (0, 8, 12, 16)
    assert Folded(word_bits=4, lengths=lengths, aligned=False).starts == (0, 5, 8, 12)
    assert Folded(word_bits=4, lengths=lengths).address(1, 2) == (2, 2)
    assert Folded(word_bits=4, lengths=lengths, aligned=False).address(1, 2) == (1, 3)
    assert Folded(word_bits=4, lengths=()).depth_words == 0


@given(channels=st.integers(1, 9), word_bits=WIDTHS, kernel=st.tuples(st.integers(1, 3), st.integers(1, 4)))
def test_an_element_of_a_kernel_is_found_by_position_and_channel(channels, word_bits, kernel):
    weight = np.random.default_rng(channels).integers(0, 2, (3, *kernel, channels))
    for w, run in zip(weight, kernel_runs(weight)):
        words = fold(run, word_bits)
        for row, column, channel in np.ndindex(w.shape):
            place = element_index(row * kernel[1] + column, channel, channels)
            assert element(words, place, word_bits) == w[row, column, channel]


# Runs and the rest of golden.


@st.composite
def maps(draw):
    """(H, W, C) of distinct numbers, with a window that fits."""
    source = case_map(draw(st.integers(1, 6)), draw(st.integers(1, 7)), draw(st.integers(1, 4)))
    return source, np.arange(source.size).reshape(source.shape), draw(windows(source, 4))


@given(maps(), st.sampled_from(["pull", "raster"]))
def test_tables_read_a_store_of_single_elements_in_the_order_of_the_expanded_store(drawn, order):
    """A5: the sequencer, fed each tuple once, makes the runs of the window-expanded store."""
    source, x, window = drawn
    stage = Stage(name="conv_1", weighted=True, height=source.height, width=source.width, window=Taps(window))
    tables = schedule([stage], order).tables[0]
    single = map_run(x).reshape(-1, source.channels)  # each position's tuple, once
    made: dict[int, list[int]] = {}
    for read in reads(image_of(tables, tables.capacity(False), False), single[tables.input_order]):
        made.setdefault(read.window, []).extend(read.value.tolist())
    runs = window_runs(x, window)
    assert [made[i] for i in range(len(tables.output_order))] == [runs[i].tolist() for i in tables.output_order]
    assert sorted(tables.output_order.tolist()) == list(range(len(runs)))


@given(maps(), WIDTHS)
def test_a_map_that_is_stored_once_gives_the_expanded_store_element_by_element(drawn, word_bits):
    source, _, window = drawn
    x = np.random.default_rng(1).integers(0, 2, source.shape)
    words = fold(map_run(x), word_bits)
    positions = window.positions(source.height, source.width)
    for taps, run in zip(positions, window_runs(x, window)):
        places = [element_index(p, c, source.channels) for p in taps.tolist() if p >= 0 for c in range(source.channels)]
        assert [element(words, place, word_bits) for place in places] == run.tolist()


@given(maps())
def test_convolution_is_kernel_runs_times_window_runs(drawn):
    source, _, window = drawn
    layer = Conv(name="c", out_channels=3, kernel=window.kernel, stride=window.stride, padding=window.padding)
    rng = np.random.default_rng(2)
    x = random_values((1, *source.shape), source.encoding, rng)
    weight = random_values(layer.array_shapes(source)["weight"], layer.weight, rng)
    kernels = kernel_runs(weight)
    sums = [kernels[:, met] @ run for met, run in zip(valid_elements(source, window), window_runs(x[0], window))]
    np.testing.assert_array_equal(np.array(sums), layer.forward(x, {"weight": weight}, source).reshape(-1, 3))


MEMORY = Folded(word_bits=4, lengths=(5, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fold(np.ones(3, int), 0), "storage: word_bits must be an integer >= 1, got 0"),
        (lambda: element_address(3, 2.0), "storage: word_bits must be an integer >= 1, got 2.0"),
        (lambda: element_address(-1, 2), "storage: element must be >= 0, got -1"),
        (lambda: fold(np.array([1, -1]), 2), "storage: a run must be one axis of 0 and 1, got shape (2,) of int64"),
        (lambda: fold(np.ones((1, 2)), 2), "storage: a run must be one axis of 0 and 1, got shape (1, 2) of float64"),
        (lambda: unfold((1, 2), 5, 5), "storage: 5 elements need 1 words of 5 bits, got 2"),
        (lambda: element_index(2, 3, 3), "storage: channel must be 0..2, got 3"),
        (lambda: element_index(-1, 0, 3), "storage: position must be >= 0, got -1"),
        (lambda: Folded(word_bits=4, lengths=(3, 0)), "storage: lengths of runs must be >= 1, got 0"),
        (lambda: Folded(word_bits=0, lengths=()), "storage: word_bits must be an integer >= 1, got 0"),
        (lambda: MEMORY.address(2, 0), "storage: run must be 0..1, got 2"),
        (lambda: MEMORY.address(1, 3), "storage: element of run 1 must be 0..2, got 3"),
        (lambda: MEMORY.store([np.ones(5, int)]), "storage: runs must have lengths (5, 3), got (5,)"),
        (
            lambda: MEMORY.store([np.ones(5, int), np.full(3, 0.5)]),
            "storage: a run must be one axis of 0 and 1, got shape (12,) of float64",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()
