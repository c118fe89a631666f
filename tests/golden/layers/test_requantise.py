from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise, scale_to_multiplier
from bitloom.golden.layers.rounding import rounded_shift
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_images, random_values
from tests.errors import value_error

ENCODINGS = [*(signed(bits) for bits in range(2, 10)), *(unsigned(bits) for bits in range(1, 9))]
BOUND = (1 << 31) - 1
"""The largest |x + bias|."""


def exact(x: int, bias: int, multiplier: int, shift: int, layer: Requantise) -> int:
    """The rule, in fractions; ReLU before the scaling."""
    t = x * 2**layer.fraction + bias
    t = max(t, 0) if layer.relu else t
    y = Fraction(t * multiplier, 2**shift)
    whole = int(y)  # towards zero
    if abs(y - whole) >= Fraction(1, 2):
        whole += 1 if y > 0 else -1
    whole = round(y) if layer.rounding == "even" else whole  # as Python rounds
    low, high = layer.clip or (layer.encoding.low, layer.encoding.high)
    return max(low, min(high, whole))


def arrays(bias: Sequence[int], multiplier: Sequence[int], shift: Sequence[int]) -> dict[str, np.ndarray]:
    return {"bias": np.array(bias), "multiplier": np.array(multiplier), "shift": np.array(shift)}


def compare(layer: Requantise, source: Map, values: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """(n, channels) -> the layer's result, which is the rule's and the fast path's."""
    model = Model(Network(name="r", input=source, layers=(layer,)), {layer.name: values})
    images = x.reshape(-1, 1, 1, source.channels)
    plain = model.forward(images)
    fast = packed.forward(model, images)
    np.testing.assert_array_equal(plain, fast)
    layer.encoding.check("output", plain)
    rows = list(zip(*(values[what].tolist() for what in ("bias", "multiplier", "shift"))))
    expected = [[exact(v, *row, layer) for v, row in zip(p, rows)] for p in x.tolist()]
    np.testing.assert_array_equal(plain.reshape(x.shape), expected)
    return plain.reshape(x.shape)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_random_values_equal_the_rule(encoding, relu):
    rng = np.random.default_rng(encoding.bits + 10 * relu)
    layer = Requantise(name="r", encoding=encoding, relu=relu)
    source = case_map(1, 1, 65, signed(24))
    bias = rng.integers(-(1 << 22), 1 << 22, 65)
    multiplier = rng.integers(1, 1 << 16, 65)
    shift = rng.integers(24, 41, 65)  # results from far outside of the encoding to 0
    x = random_values((16, 65), signed(24), rng)
    values = {"bias": bias, "multiplier": multiplier, "shift": shift}
    y = compare(layer, source, values, x)
    assert {0 if relu else encoding.low, encoding.high} <= set(y.ravel().tolist())


@pytest.mark.sample(16)
@pytest.mark.parametrize("shift", range(62))
def test_halves_become_even(shift):
    """As Python and numpy round, for every result, its ties and their neighbours; by the plain and the fast rule."""
    log = min(max(shift - 1, 0), 15 if shift <= 40 else 30)
    sums = np.arange(-261, 262) << max(shift - 1 - log, 0)
    sums = sums[np.abs(sums) < BOUND - 128]
    layer = Requantise(name="r", encoding=signed(9), rounding="even")
    source = case_map(1, 1, len(sums), signed(8))
    for offset in (-1, 0, 1):
        values = arrays(sums + offset, np.full(len(sums), 1 << log), np.full(len(sums), shift))
        y = compare(layer, source, values, np.zeros((1, len(sums)), int))
        wanted = np.rint((sums + offset) * 2.0 ** (log - shift))
        np.testing.assert_array_equal(y[0], np.clip(wanted, -256, 255))


@pytest.mark.sample(30)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shift", range(1, 62))
def test_every_tie_rounds_away_from_zero(shift, relu):
    """k + 1/2 becomes k + 1 from 0 on and k below 0, for every result k; one sum less gives k and one more k + 1."""
    log = min(shift - 1, 15 if shift <= 40 else 30)  # of the multiplier
    k = np.arange(-130, 131)
    sums = (2 * k + 1) << (shift - 1 - log)
    reach = np.abs(sums) < BOUND - 128
    k, sums = k[reach], sums[reach]
    assert len(k) == {39: 256, 40: 128, 54: 256, 55: 128, 56: 64, 57: 32, 58: 16, 59: 8, 60: 4, 61: 2}.get(shift, 261)
    layer = Requantise(name="r", encoding=signed(8), relu=relu)
    source = case_map(1, 1, len(k), signed(8))
    for offset, expected in ((0, np.where(k >= 0, k + 1, k)), (-1, k), (1, k + 1)):
        values = arrays(sums + offset, np.full(len(k), 1 << log), np.full(len(k), shift))
        y = compare(layer, source, values, np.zeros((1, len(k)), int))
        np.testing.assert_array_equal(y[0], np.clip(expected, 0 if relu else -128, 127))


LIMITS = [(signed(8), False, (-127, 127), {-127, 127}), (signed(8), True, (-5, 100), {0, 100})]
LIMITS += [(signed(8), True, (3, 9), {3, 9}), (signed(4), False, (-3, -2), {-3, -2})]
LIMITS += [(unsigned(3), False, (1, 6), {1, 6}), (unsigned(8), True, (7, 7), {7})]
LIMITS += [(signed(2), False, (-2, 1), {-2, 1}), (signed(5), True, (-9, 0), {0})]


@pytest.mark.parametrize(("encoding", "relu", "clip", "reached"), LIMITS)
def test_results_keep_to_limits_of_their_own(encoding, relu, clip, reached):
    rng = np.random.default_rng(7)
    layer = Requantise(name="r", encoding=encoding, relu=relu, clip=clip)
    source = case_map(1, 1, 65, signed(24))
    bias, multiplier = rng.integers(-(1 << 22), 1 << 22, 65), rng.integers(1, 1 << 16, 65)
    x = random_values((16, 65), signed(24), rng)
    y = compare(layer, source, arrays(bias, multiplier, rng.integers(24, 41, 65)), x)
    assert reached <= set(y.ravel().tolist())
    assert (layer.low, layer.high) == (min(reached), max(reached))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("encoding", [signed(8), signed(2), unsigned(8), unsigned(1)], ids=str)
def test_extremes(encoding, relu):
    """|x + bias| of 2^31 - 1, all ends of multiplier and shift, and the values at which clipping begins."""
    layer = Requantise(name="r", encoding=encoding, relu=relu)
    source = case_map(1, 1, 8, signed(9))
    for multiplier in (1, 2, 1 << 15, (1 << 16) - 1, (1 << 31) - 1):
        for shift in (0, 1, 16, 23, 24, 39, 40, 53, 61):
            ends = [(v << shift) // (2 * multiplier) for v in (2 * encoding.high + 1, 2 * encoding.low - 1)]
            near = [min(max(v + d, 256 - BOUND), BOUND - 255) for v in ends for d in (0, 1)]
            bias = [BOUND - 255, 256 - BOUND, 0, -1, *near]
            values = arrays(bias, [multiplier] * 8, [shift] * 8)
            x = np.array([-256, -255, -1, 0, 1, 2, 255])[:, None].repeat(8, axis=1)
            compare(layer, source, values, x)


@given(st.integers(-(1 << 62) + 1, (1 << 62) - 1), st.integers(0, 61), st.integers(0, 16))
@example(-(1 << 62) + 1, 61, 0)
@example(-(1 << 20), 21, 0)
@example(-3, 1, 16)
@example(-3, 0, 16)
def test_the_rule_for_hardware_is_the_same(product, shift, more):
    """An arithmetic shift right of p + 2^(shift - 1) - [p < 0], also with more bits behind the point."""
    ours = rounded_shift(np.array(product), np.array(shift))
    p = product << more
    s = shift + more
    assert ours == ((p + (1 << (s - 1)) - (p < 0)) >> s if s else p)


@pytest.mark.parametrize(("sign", "more", "result"), [(1, 0, 0), (-1, 0, 0), (1, 1, 1), (-1, 1, -1)])
def test_just_below_a_half_of_53_bits_is_no_half(sign, more, result):
    """(2^53 - 1) / 2^54, to which floating point of 53 bits adds 1/2 and gets 1."""
    layer = Requantise(name="r", encoding=signed(8))
    source = case_map(1, 1, 1, signed(2))
    values = arrays([sign * (20_394_401 + more)], [441_650_591], [54])
    assert compare(layer, source, values, np.array([[0]])).tolist() == [[result]]


@pytest.mark.parametrize("seed", range(24))
def test_conv_bias_requantise_equal_pytorch(seed, torch):
    """Whole layers: PyTorch convolves with the bias, scales, rounds half away from zero and clamps, in float64.

    Nothing there is rounded but by our rule: products are below 2^53.
    """
    rng = np.random.default_rng(seed)
    feature = ENCODINGS[seed % len(ENCODINGS)]
    weight = signed(2 + seed % 7)
    source = case_map(int(rng.integers(3, 9)), int(rng.integers(3, 11)), (1, 3, 9, 33)[seed % 4], feature)
    kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    stride = (1 + seed % 3, 1 + seed // 3 % 3)
    padding = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel))
    channels = (9, 33, 1, 3)[seed // 2 % 4]
    conv = Conv(name="conv_1", out_channels=channels, kernel=kernel, stride=stride, padding=padding, weight=weight)
    fraction, bits = (0, 3, 8, 0)[seed % 4], (16, 20, 16, 24)[seed % 4]
    encoding = ENCODINGS[-1 - seed % len(ENCODINGS)]
    clip = (encoding.low // 2, (encoding.high + 1) // 2) if seed % 3 == 0 else None
    layer = Requantise(name="requantise_1", encoding=encoding, relu=seed % 2 == 0, fraction=fraction, clip=clip)
    spread = conv.fan_in(source) ** 0.5 * feature.high * weight.high / 3 + 1
    scales = [scale_to_multiplier(encoding.high / spread * float(f), bits) for f in rng.uniform(0.1, 2, channels)]
    multiplier, shift = np.array(scales).T
    shift = shift + fraction
    if seed % 4 == 0:  # many ties
        multiplier, shift = np.full(channels, 3), np.full(channels, 4)
    bias = rng.integers(-int(spread) - 1 << fraction, int(spread) + 1 << fraction, channels)
    w = random_values((channels, *kernel, source.channels), weight, rng)
    values = {"bias": bias, "multiplier": multiplier, "shift": shift}
    model = Model(Network(name="n", input=source, layers=(conv, layer)), {"conv_1": {"weight": w}, layer.name: values})
    x = random_images(model, 3, rng)

    def real(a: np.ndarray):
        return torch.tensor(a, dtype=torch.float64)

    top, left, bottom, right = padding
    padded = torch.nn.functional.pad(real(x).permute(0, 3, 1, 2), (left, right, top, bottom))
    sums = torch.nn.functional.conv2d(padded, real(w).permute(0, 3, 1, 2), real(bias) / 2**fraction, stride)
    if layer.relu:
        sums = torch.relu(sums)
    assert int(sums.abs().max()) * int(multiplier.max()) << fraction < 1 << 53
    y = sums * (real(multiplier) / 2.0 ** (real(shift) - fraction))[:, None, None]
    y = torch.clamp(torch.sign(y) * torch.floor(torch.abs(y) + 0.5), *(clip or (encoding.low, encoding.high)))
    np.testing.assert_array_equal(model.forward(x), y.permute(0, 2, 3, 1).numpy())
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))


@st.composite
def with_fractions(draw: st.DrawFn) -> tuple[Requantise, list[int], int, int, int]:
    """A layer with bits behind the point, values of 12 bits, and what one of its channels may have."""
    fraction, bits = draw(st.integers(1, 16)), draw(st.integers(1, 31))
    layer = Requantise(name="r", encoding=draw(st.sampled_from(ENCODINGS)), relu=draw(st.booleans()), fraction=fraction)
    most = min((1 << 31 + fraction) - 1, ((1 << 62) - 1) // ((1 << bits) - 1))  # of |t|
    room = most - (2048 << fraction)
    assume(room >= 0)
    multiplier, shift = draw(st.integers(1, (1 << bits) - 1)), draw(st.integers(0, 61))
    near = 1 << min(61, max(0, shift + layer.encoding.bits - multiplier.bit_length()))
    bias = draw(st.integers(-min(room, near), min(room, near)) | st.integers(-room, room))
    return layer, draw(st.lists(st.integers(-2048, 2047), min_size=1)), bias, multiplier, shift


@given(with_fractions())
def test_a_bias_with_bits_behind_the_point_equals_the_rule(case):
    layer, x, bias, multiplier, shift = case
    values = arrays([bias], [multiplier], [shift])
    compare(layer, case_map(1, 1, 1, signed(12)), values, np.array(x)[:, None])


def test_a_fraction_says_what_no_integer_bias_can():
    """0.3 x + 0.55 in 16 bits behind the point, at the step from 1 to 2, and the nearest without a fraction."""
    source = case_map(1, 1, 1, signed(8))
    x = np.arange(-8, 9)[:, None]
    fine, coarse = (Requantise(name="r", encoding=signed(8), fraction=f) for f in (16, 0))
    multiplier, shift = scale_to_multiplier(0.3, 24)
    y = compare(fine, source, arrays([round(0.55 / 0.3 * 2**16)], [multiplier], [shift + 16]), x)[:, 0]
    assert y.tolist() == [int(np.floor(0.3 * v + 0.55 + 0.5)) for v in range(-8, 9)]  # no halves among them
    assert all(
        compare(coarse, source, arrays([bias], [multiplier], [shift]), x)[:, 0].tolist() != y.tolist()
        for bias in range(-20, 20)
    )


@pytest.mark.parametrize("shift", [31, 32, 40])
def test_two_roundings_are_those_of_tflite(shift):
    """Around every half of both roundings, against TFLite's own steps, in which a division drops what is behind."""
    layer = Requantise(name="r", encoding=signed(9), rounding="twice")
    multiplier = (1 << 30) + 12345
    middles = [((2 * level + 1) << shift - 1) // multiplier for level in range(-80, 80)]
    x = np.array([[middle + away] for middle in middles for away in range(-4, 5)], np.int64)
    values = arrays([7], [multiplier], [shift])
    model = Model(Network(name="r", input=case_map(1, 1, 1, signed(31)), layers=(layer,)), {"r": values})
    expected = []
    for (one,) in x.tolist():
        product = (one + 7) * multiplier
        nudged = product + (1 << 30 if product >= 0 else 1 - (1 << 30))
        high = abs(nudged) // (1 << 31) * (1 if nudged >= 0 else -1)
        mask = (1 << shift - 31) - 1
        limit = (mask >> 1) + (high < 0)
        y = (high >> shift - 31) + ((high & mask) > limit)
        expected.append(max(-256, min(255, y)))
    images = x.reshape(-1, 1, 1, 1)
    assert model.forward(images).ravel().tolist() == expected
    assert packed.forward(model, images).ravel().tolist() == expected
    once = replace(layer, rounding="once").forward(images, values, model.network.input).ravel().tolist()
    assert shift != 32 or once != expected  # at 40 a sum is too coarse to fall between the two
    assert len(set(expected)) > 100


@pytest.mark.parametrize("bits", [1, 2, 8, 24, 31])
def test_a_scale_becomes_the_nearest_of_any_width(bits):
    """No shift has a multiplier that is nearer; of two it is the larger."""
    rng = np.random.default_rng(bits)
    top = (1 << bits) - 1
    scales = [*(2.0 ** rng.uniform(-61, bits, 20)), 1.0, top, 2.0**-61, 2.0 ** (bits - 62), 0.75, top * 2.0**-61]
    for scale in (min(one, float(top)) for one in scales):
        multiplier, shift = scale_to_multiplier(scale, bits)
        assert 1 <= multiplier <= top
        assert 0 <= shift <= 61
        assert multiplier % 2 or shift == 0
        ours = Fraction(multiplier, 2**shift)
        for k in range(62):
            for m in (int(scale * Fraction(2) ** k) + d for d in (0, 1)):
                if 1 <= m <= top:
                    other = Fraction(m, 2**k)
                    nearer = abs(other - Fraction(scale)) - abs(ours - Fraction(scale))
                    assert nearer > 0 or (nearer == 0 and other <= ours)


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-62, 65536.0, float("inf"), float("nan")])
def test_a_scale_out_of_reach_is_refused(scale):
    with value_error(f"scale: must be 2^-61 .. 65535, got {scale}"):
        scale_to_multiplier(scale)


@pytest.mark.parametrize("bits", [0, 32, 8.0])
def test_a_width_out_of_reach_is_refused(bits):
    with value_error(f"bits: must be 1..31, got {bits!r}"):
        scale_to_multiplier(1.0, bits)


def test_output_and_positions_stay():
    source = case_map(5, 7, 3, signed(24))
    for encoding in ENCODINGS:
        assert Requantise(name="r", encoding=encoding).output(source) == case_map(5, 7, 3, encoding)


INT8 = signed(8)


def check(
    bias: int, multiplier: int = 1, shift: int = 0, source: Encoding = INT8, fraction: int = 0, rounding: str = "once"
) -> None:
    layer = Requantise(name="r", encoding=signed(8), fraction=fraction, rounding=rounding)
    others = 31
    values = arrays([0, bias, 0], [1, multiplier, 1], [others, shift, others])
    layer.check_arrays(values, case_map(1, 1, 3, source))


def clipped(clip: object, relu: bool = False) -> None:
    Requantise(name="r", encoding=signed(8), relu=relu, clip=clip)


CLIP = "r: clip must be None or (low, high) within"
RULE = "r: encoding must be signed 2..9 bit or unsigned 1..8 bit, got"
SUM = "r.bias: |x + bias| must be < 2^31 for every x of the map,"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Requantise(name="r", encoding=signed(1)), f"{RULE} signed 1 bit (-1..0)"),
        (lambda: Requantise(name="r", encoding=signed(10)), f"{RULE} signed 10 bit (-512..511)"),
        (lambda: Requantise(name="r", encoding=unsigned(9)), f"{RULE} unsigned 9 bit (0..511)"),
        (lambda: Requantise(name="r", encoding=BIPOLAR), f"{RULE} bipolar 1 bit (-1..1 in steps of 2)"),
        (lambda: Requantise(name="r", encoding=TERNARY), f"{RULE} ternary 2 bit (-1..1)"),
        (lambda: Requantise(name="r", encoding=8), f"{RULE} 8"),
        (lambda: Requantise(name="r", encoding=signed(8), relu=1), "r: relu must be True or False, got 1"),
        (lambda: clipped((-129, 0)), f"{CLIP} signed 8 bit (-128..127), got (-129, 0)"),
        (lambda: clipped((0, 128)), f"{CLIP} signed 8 bit (-128..127), got (0, 128)"),
        (lambda: clipped((1, 0)), f"{CLIP} signed 8 bit (-128..127), got (1, 0)"),
        (lambda: clipped((0,)), f"{CLIP} signed 8 bit (-128..127), got (0,)"),
        (lambda: clipped(()), f"{CLIP} signed 8 bit (-128..127), got ()"),
        (lambda: clipped((0, 1.0)), f"{CLIP} signed 8 bit (-128..127), got (0, 1.0)"),
        (lambda: clipped((False, 1)), f"{CLIP} signed 8 bit (-128..127), got (False, 1)"),
        (lambda: clipped(7), f"{CLIP} signed 8 bit (-128..127), got 7"),
        (lambda: clipped((-9, -1), relu=True), "r: clip must end at 0 or above with relu, got (-9, -1)"),
        (lambda: check(0, 0), "r.multiplier: values must be 1..2147483647, got 0"),
        (lambda: check(0, -1), "r.multiplier: values must be 1..2147483647, got -1"),
        (lambda: check(0, 1 << 31), "r.multiplier: values must be 1..2147483647, got 2147483648"),
        (lambda: check(0, 1, -1), "r.shift: values must be 0..61, got -1"),
        (lambda: check(0, 1, 62), "r.shift: values must be 0..61, got 62"),
        (
            lambda: check(1 << 31),
            "r.bias: values must be signed 32 bit (-2147483648..2147483647), got 2147483648",
        ),
        (lambda: check(BOUND - 126), f"{SUM} signed 8 bit (-128..127), got 2147483521 in channel 1"),
        (lambda: check(127 - BOUND), f"{SUM} signed 8 bit (-128..127), got -2147483520 in channel 1"),
        (lambda: check(0, source=signed(32)), f"{SUM} signed 32 bit (-2147483648..2147483647), got 0 in channel 0"),
        (lambda: Requantise(name="r", encoding=signed(8), fraction=17), "r: fraction must be 0..16, got 17"),
        (lambda: Requantise(name="r", encoding=signed(8), fraction=-1), "r: fraction must be 0..16, got -1"),
        (lambda: Requantise(name="r", encoding=signed(8), fraction=True), "r: fraction must be 0..16, got True"),
        (lambda: Requantise(name="r", encoding=signed(8), fraction=0.5), "r: fraction must be 0..16, got 0.5"),
        (
            lambda: Requantise(name="r", encoding=signed(8), rounding="up"),
            "r: rounding must be one of once, even, twice, got 'up'",
        ),
        (lambda: check(0, 1, 30, rounding="twice"), "r.shift: values must be 31..61, got 30"),
        (
            lambda: check(1 << 34, fraction=3),
            "r.bias: values must be signed 35 bit (-17179869184..17179869183), got 17179869184",
        ),
        (
            lambda: check((1 << 34) - 1 - (127 << 3) + 1, fraction=3),
            "r.bias: |x * 2^3 + bias| must be < 2^34 for every x of the map, signed 8 bit (-128..127), "
            "got 17179868168 in channel 1",
        ),
        (
            lambda: check((1 << 47) - (127 << 16), 1 << 15, fraction=16),
            "r.bias: |x * 2^16 + bias| must be < 2^47 for every x of the map, signed 8 bit (-128..127), "
            "got 140737480032256 in channel 1",
        ),
        (
            lambda: check(1 << 46, 1 << 16, fraction=16),
            "r.multiplier: |x * 2^16 + bias| * multiplier must be < 2^62 for every x of the map, "
            "signed 8 bit (-128..127), got 65536 in channel 1",
        ),
        (  # (127 * 2^16 + bias) * 2^30 is 2^62
            lambda: check((1 << 32) - (127 << 16), 1 << 30, fraction=16),
            "r.multiplier: |x * 2^16 + bias| * multiplier must be < 2^62 for every x of the map, "
            "signed 8 bit (-128..127), got 1073741824 in channel 1",
        ),
        (
            lambda: Requantise(name="r", encoding=signed(8)).check_arrays({}, case_map(1, 1, 3)),
            "r: arrays must be ['bias', 'multiplier', 'shift'], got []",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()
