import math
from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, SumPool
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.golden.packing import to_bits
from tests.cases import case_map, random_values
from tests.errors import value_error


def random_pool(kind: type, seed: int):
    """(layer, source, x (N, H, W, C))."""
    rng = np.random.default_rng(seed)
    kh, kw = (int(v) for v in rng.integers(1, 5, 2))
    top, bottom = (int(v) for v in rng.integers(0, kh, 2))
    left, right = (int(v) for v in rng.integers(0, kw, 2))
    bits = [] if kind in (AvgPool, SumPool) else [BIPOLAR, bipolar(3)]
    encodings = [*bits, signed(8), unsigned(3)]
    source = case_map(int(rng.integers(kh, 8)), int(rng.integers(kw, 11)), 5, encodings[seed % len(encodings)])
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    layer = kind(name="pool_1", kernel=(kh, kw), stride=stride, padding=(top, left, bottom, right))
    return layer, source, random_values((2, *source.shape), source.encoding, rng)


def padded(torch, x: np.ndarray, padding: tuple[int, ...], value: float):
    """NHWC integers -> padded NCHW float64."""
    top, left, bottom, right = padding
    nchw = torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2)
    return torch.nn.functional.pad(nchw, (left, right, top, bottom), value=value)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("kind", "sign"), [(MaxPool, 1), (MinPool, -1)])
def test_extremes_equal_pytorch(kind, sign, seed, torch):
    """The smallest value is the negative of the largest of the negatives."""
    layer, source, x = random_pool(kind, seed)
    y = sign * torch.nn.functional.max_pool2d(
        padded(torch, sign * x, layer.padding, -np.inf), layer.kernel, layer.stride
    )
    ours = layer.forward(x, {}, source)
    assert ours.shape[1:] == layer.output(source).shape
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())


@pytest.mark.parametrize("seed", range(30))
def test_average_equals_pytorch(seed, torch):
    """Sums of values and of ones by PyTorch; their quotient, halves away from zero."""
    layer, source, x = random_pool(AvgPool, seed)
    pool2d = torch.nn.functional.avg_pool2d
    total, count = (
        pool2d(padded(torch, a, layer.padding, 0), layer.kernel, layer.stride, divisor_override=1)
        for a in (x, np.ones_like(x))
    )
    mean = total / count
    y = torch.sign(mean) * torch.floor(mean.abs() + 0.5)
    ours = layer.forward(x, {}, source)
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())
    source.encoding.check("average", ours)


@pytest.mark.parametrize("seed", range(30))
def test_sum_equals_pytorch(seed, torch):
    layer, source, x = random_pool(SumPool, seed)
    image = padded(torch, x, layer.padding, 0)
    y = torch.nn.functional.avg_pool2d(image, layer.kernel, layer.stride, divisor_override=1)
    ours = layer.forward(x, {}, source)
    output_map = layer.output(source)
    assert ours.shape[1:] == output_map.shape
    np.testing.assert_array_equal(ours, y.permute(0, 2, 3, 1).numpy())
    output_map.encoding.check("sum", ours)


def test_a_sum_of_too_many_bits_is_refused():
    with value_error("pool_1: sums must fit 62 bits, got 64 for 6 taps"):
        SumPool(name="pool_1", kernel=(3, 2), stride=(1, 1)).output(case_map(3, 2, 1, signed(61)))


@pytest.mark.parametrize(("kernel", "padding"), [((3, 2), (1, 1)), ((2, 5), (1, 2)), ((4, 3), (0, 1))])
def test_average_counts_as_pytorch_does_without_padding(kernel, padding, torch):
    x = random_values((3, 7, 9, 3), signed(8), np.random.default_rng(1))
    nchw = torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2)
    mean = torch.nn.functional.avg_pool2d(nchw, kernel, (2, 3), padding, count_include_pad=False)
    y = (torch.sign(mean) * torch.floor(mean.abs() + 0.5)).permute(0, 2, 3, 1).numpy()
    layer = AvgPool(name="pool_1", kernel=kernel, stride=(2, 3), padding=(*padding, *padding))
    np.testing.assert_array_equal(layer.forward(x, {}, case_map(7, 9, 3, signed(8))), y)


@pytest.mark.parametrize("bits", [1, 3])
def test_maximum_is_or_of_thermometer_bits(bits):
    layer = MaxPool(name="pool_1", kernel=(2, 3), stride=(1, 2))
    source = case_map(4, 7, 2, bipolar(bits))
    x = random_values((3, 4, 7, 2), bipolar(bits), np.random.default_rng(bits))
    stored = to_bits(x, bipolar(bits))
    ours = to_bits(layer.forward(x, {}, source), bipolar(bits))
    for row, column in np.ndindex(3, 3):
        either = stored[:, row : row + 2, 2 * column : 2 * column + 3].max(axis=(1, 2))
        np.testing.assert_array_equal(ours[:, row, column], either)


def test_quotients_round_halves_away_from_zero():
    total = np.arange(-20, 21)
    for count in range(1, 9):
        exact = [int(abs(t) / count + 0.5) * (1 if t >= 0 else -1) for t in total.tolist()]
        assert rounded_quotient(total, np.array(count)).tolist() == exact
    assert rounded_quotient(np.array([5, -5, 3, -3, 1, -1]), np.array(2)).tolist() == [3, -3, 2, -2, 1, -1]


@pytest.mark.parametrize("encoding", [signed(8), unsigned(8)], ids=str)
@pytest.mark.parametrize("count", range(1, 82))
def test_averages_are_exact_for_every_sum(count, encoding):
    """B14. The quotient is within half of one; where it is half of one away, it is the larger in magnitude."""
    total = np.arange(encoding.low * count, encoding.high * count + 1)
    mean = rounded_quotient(total, np.array(count))
    encoding.check("mean", mean)
    off = 2 * (mean * count - total)  # twice the error, times count
    assert (np.abs(off) <= count).all()
    tie = np.abs(off) == count
    assert (np.abs(mean[tie]) * count > np.abs(total[tie])).all()
    assert (np.sign(mean[tie]) == np.sign(total[tie])).all()
    gaps = encoding.high - encoding.low  # one tie in the middle of each
    assert tie.sum() == (0 if count % 2 else gaps)


def exact_mean(values: list[int]) -> int:
    mean = Fraction(sum(values), len(values))
    return math.floor(mean + Fraction(1, 2)) if mean > 0 else math.ceil(mean - Fraction(1, 2))


@pytest.mark.parametrize("size", [(32, 32), (16, 16), (8, 8), (6, 11), (7, 4), (2, 5)])
@pytest.mark.parametrize("encoding", [signed(8), unsigned(8), signed(2)], ids=str)
def test_windows_are_cut_at_the_border(size, encoding):
    """B20: windows 3 x 3 of stride 2 that stick out over the right and bottom edge; even sizes have cut windows."""
    source = case_map(*size, 2, encoding)
    x = random_values((1, *source.shape), encoding, np.random.default_rng(1))
    cut = {"kernel": (3, 3), "stride": (2, 2), "padding": (0, 0, 1, 1)}
    for kind, of in ((MaxPool, max), (MinPool, min), (AvgPool, exact_mean)):
        layer = kind(name="pool_1", **cut)
        y = layer.forward(x, {}, source)
        assert y.shape == (1, size[0] // 2, size[1] // 2, 2)
        for row, column, channel in np.ndindex(*y.shape[1:]):
            window = x[0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3, channel]
            assert y[0, row, column, channel] == of(window.ravel().tolist())
    assert window.shape == (3 - (size[0] + 1) % 2, 3 - (size[1] + 1) % 2)


def pool(kind: type, **more: object):
    return kind(**{"name": "pool_1", "kernel": (3, 2), "stride": (1, 1), **more})


@pytest.mark.parametrize("kind", [MaxPool, MinPool, AvgPool, SumPool])
def test_what_does_not_fit_is_refused(kind):
    with value_error("pool_1: the window must fit the padded map, got kernel (3, 2) on 2 x 9"):
        pool(kind).output(case_map(2, 9, 1, signed(8)))
    with value_error("pool_1: the window must fit the padded map, got kernel (3, 2) on 9 x 1"):
        pool(kind).output(case_map(9, 1, 1, signed(8)))
    with value_error("pool_1: stride must be >= 1, got (1, 0)"):
        pool(kind, stride=(1, 0))
    with value_error("pool_1: arrays must be [], got ['weight']"):
        pool(kind).check_arrays({"weight": np.zeros(1, int)}, case_map(4, 4, 1))


@pytest.mark.parametrize("encoding", [BIPOLAR, TERNARY])
def test_an_average_or_a_sum_of_bits_is_refused(encoding):
    for kind, what in ((AvgPool, "an average"), (SumPool, "a sum")):
        with value_error(f"pool_1: {what} needs a signed or unsigned map, got {encoding}"):
            pool(kind).output(case_map(4, 4, 1, encoding))
