"""Functions of a channel as sums of ramps: from their steps, and from files with an activation of each channel.

``python -m tests.overlay.importers.test_ramps`` prints what slopes of each channel take.
"""

from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.importers.activations import curve_table
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.ramps import Ramps, Stepped
from tests.errors import refusal, value_error

from . import against
from .onnx_files import Chain as OnnxChain
from .test_boundaries import CHANNELS, network
from .test_curves import summed
from .test_tflite import import_chain as import_tflite_chain
from .test_tflite_forms import check
from .tflite_files import Chain


def values_of(functions, most=None):
    """Results of requantisations of ramps, and of their sum, for all numbers of functions of one range."""
    ramps, fitted = Ramps.of(functions, signed(9), most=most)
    return values_by(ramps, fitted, functions), ramps


def values_by(ramps, fitted, functions):
    """The same with any factors."""
    numbers = np.arange(functions[0].low, functions[0].high + 1)
    rows = []
    for ramp, factors in zip(ramps.flat, fitted.factors):
        x = numbers * ramp.reads << fitted.fraction
        product = (x + factors.bias) * factors.multiplier
        half = (1 << factors.shift >> 1) - (product < 0 if not fitted.half_even else ~(product >> factors.shift) & 1)
        highest = (1 << ramps.top.bit_length()) - 1
        rows.append(np.clip((product + half * (factors.shift > 0)) >> factors.shift, 0, highest))
    rows = np.array(rows).reshape(len(functions), ramps.count, -1)
    total = np.clip(ramps.bases[:, None] + (rows * ramps.signs[:, :, None]).sum(axis=1), *ramps.ends)
    own = np.array([each.ends for each in functions]) if ramps.cut_behind else np.array([ramps.ends])
    return np.clip(total, own[:, :1], own[:, 1:])


def prelu(rng, x):
    """As TFLite's kernel has it: any slope, any scales."""
    source, result = ((float(10 ** rng.uniform(-2, 0)), int(rng.integers(-128, 128))) for _ in range(2))
    return curve_table("PRELU", source, result, {"slope": (int(rng.integers(-127, 128)), 0.01)})


def clipped(rng, x):
    return np.clip(x, *sorted(rng.integers(-140, 140, 2)))


def bent(rng, x):
    """Two slopes, halves away from zero, and ends."""
    return bent_by(rng, x, 1)


def bent_by(rng, x, most):
    slopes = rng.uniform(0, most, 2) * rng.choice([-1, 1], 2)
    knee = rng.integers(-128, 128)
    y = np.where(x < knee, slopes[0] * (x - knee), slopes[1] * (x - knee)) + rng.uniform(-50, 50)
    low, high = sorted(rng.integers(-128, 128, 2))
    return np.clip(np.sign(y) * np.floor(np.abs(y) + 0.5), low, high).astype(int)


@pytest.mark.parametrize("function", [prelu, clipped, bent])
def test_sums_of_ramps_are_the_functions(function):
    rng = np.random.default_rng(3)
    x = np.arange(-128, 128)
    for _ in range(4):
        rows = np.array([function(rng, x) for _ in range(12)])
        got, ramps = values_of([Stepped.of_values(-128, row) for row in rows.tolist()])
        np.testing.assert_array_equal(got, rows)
        assert ramps.count <= 4


def test_ends_of_channels_may_be_cut_behind_the_sum():
    """As of steep lines, which leave the range of a ramp, or of what would take too many ramps."""
    rng = np.random.default_rng(3)
    rows = np.array([bent_by(rng, np.arange(-128, 128), 3) for _ in range(40)])
    functions = [Stepped.of_values(-128, row) for row in rows.tolist()]
    with value_error("a line in front of a quantiser must rise by at most 255 levels"):
        values_of(functions)
    got, ramps = values_of(functions, most=2)
    np.testing.assert_array_equal(got, rows)
    assert ramps.cut_behind
    assert ramps.count <= 3
    small = [Stepped.of_values(0, [2, 2, 2, 3, 4, 5, 6, 6, 6]), Stepped.of_values(0, list(range(9)))]
    assert [values_of(small, most)[1].count for most in (None, 2, 1)] == [2, 2, 1]
    assert values_of([Stepped.of_values(0, [0, 1, 2]), Stepped.of_values(0, [0, 1, 1])], most=2)[1].cut_behind is False


@pytest.mark.parametrize("most", [None, 2])
def test_how_many_numbers_are_off(most):
    """With factors that aren't exact, of all numbers; two ramps of a number may both be off."""
    rng = np.random.default_rng(3)
    furthest = set()
    for _ in range(8):
        rows = np.array([bent_by(rng, np.arange(-128, 128), 1) for _ in range(8)])
        functions = [Stepped.of_values(-128, row) for row in rows.tolist()]
        ramps, fitted = Ramps.of(functions, signed(9), most=most)
        assert ramps.off(functions, fitted) == (0, 0)
        moved = [
            replace(each, bias=each.bias + int(rng.integers(-2, 3) << fitted.fraction), exact=bool(number % 5 > 1))
            for number, each in enumerate(fitted.factors)
        ]
        moved = [each if not each.exact else before for each, before in zip(moved, fitted.factors)]
        other = replace(fitted, factors=tuple(moved))
        far = np.abs(values_by(ramps, other, functions) - rows)
        assert ramps.off(functions, other) == ((far > 0).sum(), far.max())
        furthest.add(far.max())
    assert len(furthest) > 1


def test_a_line_up_to_a_common_end_is_one_ramp():
    """Where all channels end there, or at its other side."""
    assert values_of([Stepped.of_values(0, [0, 1, 2, 3, 3, 3]), Stepped.of_values(0, [0, 0, 1, 2, 3, 3])])[1].count == 1
    assert values_of([Stepped.of_values(0, [0, 1, 2, 3, 4, 5]), Stepped.of_values(0, [0, 1, 2, 2, 2, 2])])[1].count == 1
    assert (
        values_of([Stepped.of_values(0, [0, 1, 2, 3, 4, 5, 6]), Stepped.of_values(0, [1, 1, 1, 2, 3, 3, 3])])[1].count
        == 2
    )


def test_three_lines_are_no_sum_of_ramps():
    with value_error("each channel must be two straight lines and their ends at most in front of a quantiser"):
        Ramps.of([Stepped.of_values(0, [0, 4, 8, 8, 8, 8, 9, 13, 17, 17, 16])], signed(9))


def test_a_ramp_has_8_bits():
    with value_error("a line in front of a quantiser must rise by at most 255 levels"):
        Ramps.of([Stepped.of_values(0, range(0, 600, 2)), Stepped.of_values(0, [0] * 299 + [1])], signed(10))


def with_slopes(chain, slopes, grid=(0.019, 5), scale=0.01):
    constant = chain.constant(np.int8(slopes).reshape(1, 1, -1), (scale,))
    return chain.operator("PRELU", chain.now.shape, grid, (constant,))


SLOPES = (-40, 0, 100, 127, -128, 30, 1)
PLACES = {
    "a convolution": lambda chain, rng: with_slopes(chain.conv(rng, 7, (3, 3), (0.03, 9)), SLOPES),
    "one channel's": lambda chain, rng: with_slopes(chain.conv(rng, 1, (3, 3), (0.03, 9)), -40),
    "the input": lambda chain, rng: with_slopes(chain, SLOPES[:3]).conv(rng, 4, (3, 3), (0.03, 9)),
    "a padded map": lambda chain, rng: with_slopes(chain.conv(rng, 7, (3, 3), (0.03, 9)).pad((1, 0), (0, 2)), SLOPES),
    "a pool": lambda chain, rng: with_slopes(chain.conv(rng, 7, (3, 3), (0.03, 9)).pool("MAX", (2, 2)), SLOPES),
    "a dense layer": lambda chain, rng: with_slopes(
        chain.reshape(1, 60).dense(rng, 7, (0.03, 9), bias=False).reshape(1, 1, 1, 7), SLOPES
    ),
    "a convolution, and a maximum behind": lambda chain, rng: with_slopes(
        chain.conv(rng, 7, (3, 3), (0.03, 9)), SLOPES
    ).with_constant("MAXIMUM", 9, (0.019, 5), (0.019, 5)),
    "a sum": lambda chain, rng: with_slopes(summed(chain, rng), SLOPES[:4]),
    "another": lambda chain, rng: with_slopes(
        with_slopes(chain.conv(rng, 7, (3, 3), (0.03, 9)), SLOPES), SLOPES[::-1], (0.02, -70), 0.004
    ),
}
"""By what TFLite's PRELU reads."""


def tflite(place):
    rng = np.random.default_rng(3)
    chain = PLACES[place](Chain((4, 5, 3), 0.02, 7), rng)
    return chain.flat().dense(rng, 7, (0.05, 3))


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "one channel's"])
def test_slopes_of_channels_in_tflite(place):
    imported, _ = check(tflite(place))
    layers = imported.model.network.layers
    (first, *_) = (number for number, layer in enumerate(layers) if layer.name.startswith("ramps"))
    assert layers[first - 1].out_channels == 2 * layers[first + 1].out_channels


def test_one_slope_is_a_lookup():
    imported, _ = check(tflite("one channel's"))
    assert "lookup" in [layer.kind for layer in imported.model.network.layers]


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
def test_ends_of_channels_in_tflite(kind):
    chain = Chain((4, 5, 3), 0.02, 3).conv(np.random.default_rng(7), 3, (3, 2), (0.0331, -20))
    chain.with_constant(kind, (-30, 3, 50), (0.0331, -20), (0.0331, -20))
    check(chain.conv(np.random.default_rng(7), 4, (2, 2), (0.05, -3)))


def test_slopes_of_places_are_refused():
    rng = np.random.default_rng(3)
    chain = Chain((4, 5, 3), 0.02, 7)
    constant = chain.constant(rng.integers(0, 99, (4, 5, 3)).astype(np.int8), (0.01,))
    rule = "the slope must be of type INT8 and one number, or one for each channel"
    with refusal(f"PRELU_0 (PRELU): {rule}, got int8 of shape (4, 5, 3)"):
        import_tflite_chain(
            chain.operator("PRELU", chain.now.shape, (0.019, 5), (constant,)).conv(rng, 3, (1, 1), (0.1, 0))
        )


def onnx(slopes, *behind):
    """Two quantisers of 8 bits, and an activation between them."""
    rng = np.random.default_rng(4)
    chain = OnnxChain((2, 5, 6)).quant(1 / 16, 8)
    chain.node("Conv", rng.integers(-7, 8, (4, 2, 3, 3)).astype(np.float32)).quant(0.25, 8)
    chain.node("PRelu", np.float32(slopes).reshape(-1, 1, 1))
    for node in behind:
        chain.node(*node)
    return chain.quant(0.25, 8).node("Conv", rng.integers(-7, 8, (3, 4, 2, 2)).astype(np.float32))


@pytest.mark.parametrize(
    "chain",
    [
        onnx([-0.5, 0.125, 2, -1.5]),
        onnx([0.5, 0.25, 2, 0]),
        onnx([0.5, 0.25, 2, 0], ("Min", np.float32([1, 2, 0.5, 3]).reshape(4, 1, 1))),
        onnx([-0.75]),
    ],
)
def test_slopes_of_channels_in_onnx(chain):
    imported = against.check(chain, against.by_qonnx, near=0)
    assert not any(built.wrong[0] for built in imported.emitted.built)


def test_three_lines_of_a_channel_are_refused():
    bend = np.float32([0.5, 0.25, 2, 0.125]).reshape(4, 1, 1)
    add = ("Add", np.float32(2))
    with pytest.raises(ImportRefused, match="must be two straight lines and their ends at most"):
        against.import_chain(onnx([0.5, 0.25, 2, 0.125], add, ("PRelu", bend)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CHANNELS)
def test_sums_of_weights_that_bend_on_the_integer_engine(name):
    """Which the integer engine takes where no mix of engines has them."""
    imported = against.check(network(CHANNELS[name], 4), against.by_qonnx, engine="integer", near=0)
    names = [layer.name for layer in imported.model.network.layers]
    assert names[1] == ("ramps_1" if "slopes" in name or "pool" in name else "requantise_1")
    assert ("ends_1" in names) == ("slopes" not in name)
    assert set(imported.choice.engines) == {"integer"}


def bottleneck(rng):
    """As MobileFaceNet has them: behind a depthwise convolution, too, and between the ends of a shortcut."""
    chain = with_slopes(Chain((9, 8, 3), 0.02, 0).conv(rng, 7, (3, 3), (0.03, 3)), SLOPES, (0.03, 3))
    here = chain.here
    with_slopes(chain.conv(rng, 14, (1, 1), (0.03, 3)), 2 * SLOPES, (0.03, 3))
    with_slopes(chain.conv(rng, 0, (3, 3), (0.03, 3), depth=1), 2 * SLOPES, (0.03, 3))
    return chain.conv(rng, 7, (1, 1), (0.03, 3)).add(here, (0.05, 0)).conv(rng, 4, (1, 1), (0.03, 3))


def test_a_bottleneck_with_slopes_behind_each_convolution():
    check(bottleneck(np.random.default_rng(2)))


def cycles_of(slopes):
    """Cycles a frame, at least, of three convolutions with PRELU behind each, or without one."""
    rng = np.random.default_rng(1)
    chain = Chain((32, 32, 16), 0.02, 0)
    for outputs in (32, 64, 64):
        chain.conv(rng, outputs, (3, 3), (0.03, 0))
        if slopes is not None:
            with_slopes(chain, np.resize(slopes, outputs), (0.03, 0))
    model = import_tflite_chain(chain).model
    chosen = chosen_design(model, Wanted(folding={"kfp": 16, "kgp": 16}))
    with TemporaryDirectory() as folder:
        name = model.network.name
        build = builds.build(folder, chosen.design(name, [model]), [model], choices=chosen.choices)
        return build.program(name).ideal_cycles


if __name__ == "__main__":
    for name, slopes in {"no PRELU": None, "one slope": 40, "a slope a channel": SLOPES}.items():
        print(name, cycles_of(slopes))
