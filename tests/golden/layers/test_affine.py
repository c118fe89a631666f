from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, Encoding, signed
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Map
from bitloom.golden.layers.affine import Affine, affine
from bitloom.golden.layers.batch_norm import BatchNorm
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Model, Network
from tests.errors import value_error

SOURCE = Map(height=2, width=3, channels=4, encoding=signed(12))


def arrays(multiplier, bias):
    return {"multiplier": np.array(multiplier), "bias": np.array(bias)}


def norm(rng, **changes):
    fields = dict(name="norm", gamma=rng.normal(size=4), beta=rng.normal(size=4), eps=1e-5)
    fields |= {"mean": rng.normal(0, 30, 4), "var": rng.uniform(0.1, 900, 4)}
    return BatchNorm(**{**fields, **changes})


@pytest.mark.parametrize("relu", [False, True])
def test_each_value_for_itself(relu):
    x = np.random.default_rng(1).integers(-2048, 2048, (5, 2, 3, 4))
    layer = Affine(name="a", encoding=signed(40), relu=relu)
    own = arrays([3, -7, 0, 1 << 27], [5, -9, 2, -1])
    layer.check_arrays(own, SOURCE)
    output = layer.forward(x, own, SOURCE)
    for place in np.ndindex(x.shape):
        wanted = int(x[place]) * [3, -7, 0, 1 << 27][place[3]] + [5, -9, 2, -1][place[3]]
        assert output[place] == (max(0, wanted) if relu else wanted)


def test_files_and_the_fast_way():
    layers = (Dense(name="dense_1", out_channels=3), Affine(name="affine_1", encoding=signed(60), relu=True))
    network = Network(name="n", input=Map(height=1, width=1, channels=9, encoding=BIPOLAR), layers=layers)
    assert Network.from_dict(network.to_dict()) == network
    rng = np.random.default_rng(0)
    weight = rng.choice([-1, 1], (3, 1, 1, 9))
    model = Model(network, {"dense_1": {"weight": weight}, "affine_1": arrays([1 << 54, -(1 << 54), 3], [1, 2, 3])})
    images = rng.choice([-1, 1], (7, 1, 1, 9))
    assert np.array_equal(packed.forward(model, images), model.forward(images))  # beyond what float64 holds


@pytest.mark.parametrize("bits", [20, 32, 62])
def test_batch_normalisation(bits):
    """Every sum of every channel: the exact rule of the float64 factors, within half a step of factor and offset."""
    rng = np.random.default_rng(bits)
    one = norm(rng, scale=0.037, bias=rng.normal(size=4))
    encoding, own, exponent = affine(one, SOURCE.encoding, bits=bits)
    assert encoding.bits == bits
    sums = np.arange(-2048, 2048)[:, None] * np.ones(4, np.int64)
    layer = Affine(name="a", encoding=encoding)
    layer.check_arrays(own, SOURCE)
    output = layer.forward(sums.reshape(-1, 1, 1, 4), own, SOURCE).reshape(-1, 4)
    real = one.normalise(sums)
    step = 2.0**-exponent
    assert np.abs(output * step - real).max() <= step * 1025 + 1e-9
    if bits == 62:
        assert np.abs(output * step - real).max() < 1e-10
        assert np.array_equal(output.argmax(axis=1), real.argmax(axis=1))
    multiplier = Fraction(float(one.scale[0] * one.gamma[0] / np.sqrt(one.var[0] + 1e-5)))
    assert abs(multiplier * Fraction(2) ** exponent - int(own["multiplier"][0])) <= Fraction(1, 2)


FITS = (
    "a: x * multiplier + bias must be signed 16 bit (-32768..32767) for every x of the map, signed 12 bit (-2048..2047)"
)


@pytest.mark.parametrize(
    ("own", "line"),
    [
        (arrays([1, 1, 1, 1 << 8], [0] * 4), f"{FITS}, got -524288..524032 in channel 3"),
        (arrays([1, 1, -16, 1], [0] * 4), f"{FITS}, got -32752..32768 in channel 2"),
        (arrays([1.0] * 4, [0] * 4), "a.multiplier: dtype must be integer, got float64"),
    ],
)
def test_arrays_that_do_not_fit(own, line):
    with value_error(line):
        Affine(name="a", encoding=signed(16)).check_arrays(own, SOURCE)


@pytest.mark.parametrize("encoding", [BIPOLAR, Encoding("unsigned", 8), signed(1), 8])
def test_encodings_that_are_none(encoding):
    with value_error(f"a: encoding must be signed 2..62 bit, got {encoding}"):
        Affine(name="a", encoding=encoding)


def test_other_mistakes():
    with value_error("a: relu must be True or False, got 1"):
        Affine(name="a", encoding=signed(8), relu=1)
    with value_error("norm: bits must be 2..62, got 63"):
        affine(norm(np.random.default_rng(0)), signed(8), bits=63)
    large = norm(np.random.default_rng(0), gamma=np.full(4, 1e60))
    with pytest.raises(ValueError, match=r"^norm: results must fit 62 bits, got \d+ bits at 2\^-62\Z"):
        affine(large, signed(8))
