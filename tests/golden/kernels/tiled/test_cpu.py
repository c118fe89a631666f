"""The CPU path: every path that this machine can run, against golden's plain convolution."""

from functools import cache

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.kernels import native
from bitloom.golden.kernels.native import BuildError
from bitloom.golden.kernels.tiled import cpu, layout
from bitloom.golden.kernels.tiled.conv import PackedConv, from_golden
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from tests.errors import value_error

from . import cases

EMULATED = "avx512vpopcntdq without VPOPCNTQ"
"""The kernel for VPOPCNTQ with other instructions in its place, for machines with AVX-512 that lack it."""
POSSIBLE = cpu.paths()
PATHS = [*POSSIBLE, *([EMULATED] if "avx512bw" in POSSIBLE and "avx512vpopcntdq" not in POSSIBLE else [])]


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    real = cpu.PATHS["avx512vpopcntdq"]
    flags = tuple(flag for flag in real.flags if flag != "-mavx512vpopcntdq")
    monkeypatch.setitem(cpu.PATHS, EMULATED, cpu.Instructions(frozenset({"avx512bw"}), flags))
    return request.param


def case(rng, *, c, o, kernel, stride=(1, 1), padding=(0, 0, 0, 0), size=(7, 9), images=2):
    """Golden's layer, its source, a map of +-1 and weights of +-1."""
    layer = Conv(name="conv_1", out_channels=o, kernel=kernel, stride=stride, padding=padding)
    source = Map(height=size[0], width=size[1], channels=c, encoding=BIPOLAR)
    return layer, source, rng.choice([-1, 1], (images, *source.shape)), rng.choice([-1, 1], (o, *kernel, c))


def dots_of(path, layer, source, x, weight, **options):
    convolution = cpu.Convolution(from_golden(layer, source, weight, word_bits=64), path)
    return convolution(layout.pack(x, 64), **options)


@pytest.mark.sample(64)
@pytest.mark.parametrize("seed", range(64))
def test_equals_golden(path, seed):
    conv_case, _ = cases.random_case(seed, word_bits=64)
    conv_case.check(cpu.Convolution(conv_case.layer, path)(conv_case.words))


@pytest.mark.parametrize("options", [{"out_channels": 200}, {"size": (1, 700), "kernel": (1, 2)}])
def test_more_blocks_and_positions_than_a_task_takes(path, options):
    conv_case = cases.case(images=2, channels=70, word_bits=64, **options)
    conv_case.check(cpu.Convolution(conv_case.layer, path)(conv_case.words))


@pytest.mark.parametrize(
    ("c", "size"), [(252, 1), (253, 1), (256, 1), (260, 1), (1024, 8), (1028, 8), (2000, 7), (2100, 8)]
)
def test_counts_hold_the_largest_window(path, c, size):
    """All products equal: 8-bit counts take 63 steps of 4, 16-bit ones 65,535, twice in the last case."""
    layer, source, x, weight = case(
        np.random.default_rng(0), c=c, o=2, kernel=(size, size), size=(size, size), images=1
    )
    weight[0], weight[1] = -x[0], x[0]
    products = c * size * size
    assert dots_of(path, layer, source, x, weight).ravel().tolist() == [-products, products]


@cache
def large():
    """Work for 10 threads, in tasks that do not come out even, and its dots."""
    layer, source, x, weight = case(
        np.random.default_rng(5),
        c=100,
        o=260,
        kernel=(3, 2),
        padding=(1, 1, 2, 0),
        stride=(2, 1),
        size=(21, 21),
        images=5,
    )
    return layer, source, x, weight, layer.forward(x, {"weight": weight}, source)


@pytest.mark.parametrize("threads", [1, 2, 3, 200])
def test_any_number_of_threads_gives_the_same(path, threads):
    *request, expected = large()
    np.testing.assert_array_equal(dots_of(path, *request, threads=threads), expected)


def test_an_output_is_the_next_layers_input(path):
    rng = np.random.default_rng(7)
    layer, source, x, weight = case(rng, c=3, o=70, kernel=(3, 3), size=(8, 9))
    zeros = np.zeros((70, 1), int)
    middle = layer.output(source)
    signs = np.where(layer.forward(x, {"weight": weight}, source) >= 0, 1, -1)
    second, _, _, weights_2 = case(rng, c=70, o=6, kernel=(2, 4))
    one_bit = Map(height=middle.height, width=middle.width, channels=70, encoding=BIPOLAR)
    words = cpu.Convolution(from_golden(layer, source, weight, zeros, word_bits=64), path)(layout.pack(x, 64))
    output = cpu.Convolution(from_golden(second, one_bit, weights_2, word_bits=64), path)(words)
    np.testing.assert_array_equal(output, second.forward(signs, {"weight": weights_2}, one_bit))


def small() -> tuple[PackedConv, np.ndarray]:
    layer, source, x, weight = case(np.random.default_rng(3), c=70, o=4, kernel=(2, 2))
    return from_golden(layer, source, weight, word_bits=64), layout.pack(x, 64)


def test_the_environment_names_the_fastest_path(monkeypatch):
    monkeypatch.setattr(native, "processor_features", lambda: frozenset({"avx2", "avx512f", "avx512bw"}))
    for named, count in {"": 3, "avx512bw": 3, "avx2": 2, "scalar": 1}.items():
        monkeypatch.setenv("BITLOOM_CPU_PATH", named)
        assert cpu.paths() == ["avx512bw", "avx2", "scalar"][-count:]
    monkeypatch.setenv("BITLOOM_CPU_PATH", "avx512vpopcntdq")
    with value_error("BITLOOM_CPU_PATH: must be one of avx512bw, avx2, scalar on this machine, got 'avx512vpopcntdq'"):
        cpu.paths()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ((), ["scalar"]),
        (("popcnt", "avx2"), ["avx2", "scalar"]),
        (("avx2", "avx512f"), ["avx2", "scalar"]),
        (("avx2", "avx512f", "avx512bw"), ["avx512bw", "avx2", "scalar"]),
        (("avx2", "avx512f", "avx512bw", "avx512_vpopcntdq"), ["avx512vpopcntdq", "avx512bw", "avx2", "scalar"]),
    ],
)
def test_the_path_is_chosen_by_what_the_processor_has(monkeypatch, features, expected):
    monkeypatch.delenv("BITLOOM_CPU_PATH", raising=False)
    monkeypatch.setattr(native, "processor_features", lambda: frozenset(features))
    assert cpu.paths() == expected
    taken = []
    monkeypatch.setattr(cpu, "library", lambda path: taken.append(path) or type("Library", (), {"bitloom_conv": None}))
    assert cpu.Convolution(small()[0]).path == expected[0]
    assert taken == expected[:1]
    names = ", ".join(expected)
    with value_error(f"conv_1: path must be one of {names} on this machine, got 'neon'"):
        cpu.Convolution(small()[0], "neon")


def test_kernels_begin_in_a_cache_line():
    conv, _ = small()
    for nibbles in (False, True):
        assert cpu._in_order(conv, nibbles).ctypes.data % 64 == 0


def test_requests_are_checked():
    conv, words = small()
    layer, source, _, weight = case(np.random.default_rng(3), c=70, o=4, kernel=(2, 2))
    with value_error("conv_1: words must have 64 bits on the CPU path, got 32"):
        cpu.Convolution(from_golden(layer, source, weight, word_bits=32))
    convolution = cpu.Convolution(conv, "scalar")
    for threads in (0, 1.5):
        with value_error(f"conv_1: threads must be an integer >= 1, got {threads}"):
            convolution(words, threads=threads)
    with value_error("conv_1: input must be uint64, as the weights, got uint32"):
        convolution(words.astype(np.uint32))
    with value_error("conv_1: input must have shape (N, 2, H, W), got (2, 1, 7, 9)"):
        convolution(words[:, :1])


def test_without_a_compiler_the_reason_is_one_line(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-g++")
    cpu.library.cache_clear()
    with pytest.raises(BuildError, match=r"^C\+\+ compiler 'no-such-g\+\+' was not found: .*\Z"):
        cpu.Convolution(small()[0])
