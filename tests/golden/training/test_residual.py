"""Training of residual networks of bits: additions, signs of integers, and errors that come from several readers."""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.training.architecture import network_of
from bitloom.golden.training.block_graph import BlockGraph
from bitloom.golden.training.reproducible import to_grid
from bitloom.golden.training.residual import AddBlock, SignBlock
from bitloom.golden.training.train import Recipe, fit
from tests.errors import value_error

from .test_train import derivative, flat, integers, toy_data

MAP = Map(height=3, width=2, channels=4, encoding=signed(6))
SOURCE = Map(height=5, width=7, channels=2, encoding=unsigned(3))


def test_addition_equals_golden_and_its_derivative_is_that_of_the_clipped_sum():
    layer = Add(name="add", encoding=signed(6), clip=(-20, 25), inputs=("a", "b"))
    b = AddBlock(layer, [MAP, MAP], 5, [32.0, 64.0])
    x = [integers((5, *MAP.shape), -32, 31, seed) for seed in (1, 2)]
    out, tape = b.forward({}, np.stack([flat(one) for one in x]))
    np.testing.assert_array_equal(out, flat(layer.forward_of(x, b.arrays(), [MAP, MAP])))
    assert (out.min(), out.max(), b.target_unit) == (-20, 25, 64)
    error = to_grid(integers(out.shape, -9, 9) / 4)
    back, slopes = b.backward({}, tape, error)
    for number, unit in enumerate((32, 64)):

        def value(v, number=number):
            both = [flat(one) for one in x]
            both[number] = v
            return (error * np.clip(sum(both), -20.4, 25.4)).sum()  # between integers

        np.testing.assert_allclose(back[number], derivative(value, flat(x[number]), 0.25) * unit / 64, atol=1e-9)
    assert slopes == {}


def test_signs_equal_golden_and_let_errors_pass_where_values_are_small():
    layer = Threshold(name="sign")
    b = SignBlock(layer, MAP, 5, 32.0)
    x = integers((5, *MAP.shape), -32, 31)
    out, tape = b.forward({}, flat(x))
    np.testing.assert_array_equal(out, flat(layer.forward(x, b.arrays(), MAP)))
    error = to_grid(integers(out.shape, -9, 9) / 4)
    np.testing.assert_array_equal(b.backward({}, tape, error)[0], error * (np.abs(flat(x)) <= 10))
    with value_error("sign: training needs one level behind an add or a requantise, got 3"):
        SignBlock(replace(layer, levels=3), MAP, 5)


def test_errors_of_all_readers_add_up():
    """Of a map that is added twice and read once: against blocks put one behind the other by hand."""
    graph = BlockGraph(network_of("net", SOURCE, "conv4,res,res,dense3"), 4)
    params = {name: b.initial(7, i) for i, (name, b) in enumerate(graph.blocks.items())}
    out, steps = graph.forward(params, flat(integers((4, *SOURCE.shape), 0, 7)))
    error = to_grid(integers(out.shape, -64, 64) / 64)
    gradients = dict(graph.backward(params, steps, error))
    tape = {step.name: step.tape for step in steps}

    def back(name, e):
        return graph.blocks[name].backward(params[name], tape[name], to_grid(e))

    e = back("threshold_3", back("dense_4", error)[0])[0]
    kept_3, waits_2 = back("add_3", e)[0]
    e = waits_2 + back("threshold_2", back("conv_3", back("requantise_3", kept_3)[0])[0])[0]
    kept_2, waits_1 = back("add_2", e)[0]
    e = waits_1 + back("threshold_1", back("conv_2", back("requantise_2", kept_2)[0])[0])[0]
    _, slopes = back("conv_1", back("requantise_1", e)[0])
    np.testing.assert_array_equal(gradients["conv_1"]["weight"], slopes["weight"])
    assert np.abs(slopes["weight"]).sum() > 0


def test_a_residual_network_learns_and_becomes_integers():
    """The same as in real numbers, but where rounding tells them apart."""
    network = network_of("net", SOURCE, "conv8,res,res,pool,dense3")
    images, labels = toy_data(96, SOURCE, 3)
    trained = fit(network, images, labels, Recipe(epochs=4, batch=16))
    model = trained.model()
    assert (model.arrays["threshold_3"]["threshold"] == 0).all()
    same = model.forward(images) == trained.forward(images)
    assert same.mean() > 0.8
    right = (model.forward(images).reshape(96, -1).argmax(axis=1) == labels).mean()
    assert right > 0.6
