"""Networks as graphs: order, edges, what is held and refused (golden/graph.py, golden/network.py)."""

import json
import random
import weakref
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import file, network
from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.flatten import with_flat_input
from bitloom.golden.graph import INPUT, ordered, readers, walk
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.training.train import Recipe, train
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.workloads import engines_of
from tests.cases import case_map, random_images, random_model, random_values
from tests.errors import value_error
from tests.golden.kernels.tiled import check

from .graphs import SOURCE, Subtract, residual

CHAIN = tuple(Requantise(name=name, encoding=signed(4)) for name in "abcd")


def chain(*inputs: tuple[str, ...]) -> Network:
    return Network(name="n", input=SOURCE, layers=tuple(replace(c, inputs=i) for c, i in zip(CHAIN, inputs)))


@pytest.fixture
def model(monkeypatch) -> Model:
    monkeypatch.setitem(network.LAYER_KINDS, "subtract", Subtract)
    rng = np.random.default_rng(1)
    net = residual()
    arrays = {}
    for layer in net.layers:
        shapes = layer.array_shapes_of(net.sources(layer))
        arrays[layer.name] = {key: rng.integers(1, 2, shape) for key, shape in shapes.items()}
        if "weight" in shapes:
            arrays[layer.name] = {"weight": random_values(shapes["weight"], layer.weight, rng)}
    arrays["subtract_3"] = {"sign": np.array([1, -1])}
    return Model(net, arrays)


def images(count: int = 2) -> np.ndarray:
    return random_values((count, *SOURCE.shape), SOURCE.encoding, np.random.default_rng(7))


def by_hand(model: Model, x: np.ndarray) -> list[np.ndarray]:
    arrays, net = model.arrays, model.network
    one, two, *_ = (layer.name for layer in net.layers)
    a = x @ arrays[one]["weight"][:, 0, 0].T
    b = a @ arrays[two]["weight"][:, 0, 0].T
    c = (a - b) * [1, -1]
    bias, multiplier, shift = (arrays["requantise_4"][key] for key in ("bias", "multiplier", "shift"))
    t = (c + bias) * multiplier
    d = np.clip(np.sign(t) * ((abs(t) + ((1 << shift) >> 1)) >> shift), -8, 7)
    e = d - x
    f = np.einsum("nyxc,oyxc->no", e, arrays["dense_6"]["weight"])[:, None, None]
    return [a, b, c, d, e, f]


def test_a_graph_computes_what_its_edges_say(model):
    x = images()
    for result, expected in zip(model.trace(x), by_hand(model, x), strict=True):
        assert np.array_equal(result, expected)
    assert np.array_equal(model.forward(x), by_hand(model, x)[-1])
    assert [name for name, _ in model.walk(x)] == [layer.name for layer in model.network.layers]


@pytest.mark.parametrize("batch", [None, 1, 2])
def test_the_fast_way_equals_the_definition(model, batch):
    x = images(3)
    assert np.array_equal(packed.forward(model, x, batch=batch), model.forward(x))
    for fast, slow in zip(packed.trace(model, x, batch=batch), model.trace(x), strict=True):
        assert np.array_equal(fast, slow)


def test_edges_of_a_graph():
    net = residual()
    reads = {"conv_1": (INPUT,), "conv_2": ("conv_1",), "subtract_3": ("conv_1", "conv_2")}
    reads |= {"requantise_4": ("subtract_3",), "subtract_5": ("requantise_4", INPUT), "dense_6": ("subtract_5",)}
    assert net.reads == reads
    readers = {INPUT: ("conv_1", "subtract_5"), "conv_1": ("conv_2", "subtract_3"), "conv_2": ("subtract_3",)}
    readers |= {"subtract_3": ("requantise_4",), "requantise_4": ("subtract_5",), "subtract_5": ("dense_6",)}
    assert net.readers == {**readers, "dense_6": ()}
    assert list(net.maps) == [INPUT, *(layer.name for layer in net.layers)]
    assert net.output == net.maps["dense_6"]
    assert net.sources(net.layers[2]) == (net.maps["conv_1"], net.maps["conv_2"])
    assert [net.next_layer(name) for name in ("conv_1", "conv_2", "dense_6")] == [None, net.layers[2], None]


def test_the_list_of_layers_may_have_any_order():
    net = residual()
    explicit = [replace(layer, inputs=net.reads[layer.name]) for layer in net.layers]
    for seed in range(20):
        random.Random(seed).shuffle(explicit)
        assert replace(net, layers=tuple(explicit)) == net


def test_only_inputs_that_are_not_the_layer_before_are_written(model):
    data = json.loads(json.dumps(model.network.to_dict()))
    inputs = [None, None, ["conv_1", "conv_2"], None, ["requantise_4", "@input"], None]
    assert [layer.get("inputs") for layer in data["layers"]] == inputs
    assert Network.from_dict(data) == model.network


def test_a_graph_in_a_file(model, tmp_path):
    file.save(model, tmp_path / "model.npz")
    read = file.load(tmp_path / "model.npz")
    assert read.network == model.network
    assert np.array_equal(read.forward(images()), model.forward(images()))
    assert file.model_digest(read) == file.model_digest(model)


class Value:
    """Something whose end can be seen."""


def test_a_value_is_held_until_its_last_reader_is_done():
    reads = {"a": (INPUT,), "b": ("a",), "c": ("a", "a"), "d": ("c", "b"), "e": ("d",)}
    alive: dict[str, weakref.ref] = {}
    seen = {}

    def step(name, values):
        assert values == [alive[read]() for read in reads[name]]
        value = Value()
        alive[name] = weakref.ref(value)
        return value

    def first():
        value = Value()
        alive[INPUT] = weakref.ref(value)
        return value

    for name, value in walk(reads, {INPUT: first()}, step):
        del value
        seen[name] = [key for key, ref in alive.items() if ref() is not None]
    assert seen == {"a": ["a"], "b": ["a", "b"], "c": ["b", "c"], "d": ["d"], "e": ["e"]}


def test_order_of_a_graph():
    reads = {"d": ("b", "c"), "c": ("a",), "b": ("a",), "a": (INPUT,)}
    assert ordered("n", reads) == ["a", "c", "b", "d"]
    assert readers("n", reads) == {INPUT: ("a",), "d": (), "c": ("d",), "b": ("d",), "a": ("c", "b")}


LAYERS = (
    Conv(name="conv_1", out_channels=2, kernel=(3, 3), padding=(1, 1, 1, 1)),
    Threshold(name="threshold_1"),
    Conv(name="conv_2", out_channels=2, kernel=(1, 1)),
    Threshold(name="threshold_2"),
    Subtract(name="subtract_3", inputs=("threshold_1", "threshold_2")),
)
WIDE = Network(name="wide", input=SOURCE, layers=LAYERS)
ONES = {"threshold": np.zeros((2, 1), int), "direction": np.ones(2, int)}
ARRAYS = {
    "conv_1": {"weight": np.ones((2, 3, 3, 2), int)},
    "threshold_1": ONES,
    "conv_2": {"weight": np.ones((2, 1, 1, 2), int)},
    "threshold_2": ONES,
    "subtract_3": {"sign": np.ones(2, int)},
}
RULE = "takes a chain of layers, where one layer reads each map, got threshold_1 read by conv_2 and subtract_3"


def test_what_needs_a_chain_says_so():
    with value_error(f"wide: the check of golden.kernels.tiled {RULE}"):
        check.stages(Model(WIDE, ARRAYS), 64)


def test_training_adds_maps_and_joins_them_in_no_other_way():
    network = replace(WIDE, layers=(*WIDE.layers, Conv(name="last", out_channels=2, kernel=(3, 4))))
    with value_error("subtract_3: training takes layers that read one map, and add, got subtract"):
        train(network, images(32), np.zeros(32, int), Recipe(epochs=1))


@pytest.mark.parametrize("call", [lower_alone, lambda m: engines_of(m.network)])
def test_the_compiler_joins_maps_by_additions_and_concatenations_alone(call):
    model = Model(WIDE, ARRAYS)
    with value_error("subtract_3: a layer that reads several maps must be add, multiply or concat, got subtract"):
        call(model)


def test_outputs_that_a_layer_reads():
    outputs = Outputs(name="outputs", inputs=("threshold_1", "threshold_2"))
    behind = Conv(name="last", out_channels=2, kernel=(1, 1))
    with value_error("outputs: outputs must be the last layer, got last behind it"):
        engines_of(replace(WIDE, layers=(*WIDE.layers[:-1], outputs, behind)))


@pytest.mark.parametrize(("word", "flattened"), [(2, True), (4, False)])
def test_words_of_a_dense_layer_stay_what_they_are(word, flattened):
    """Words of 2 lie in a position of 6 channels one after another; of words of 4 the last one is short."""
    source = Map(height=2, width=3, channels=6, encoding=BIPOLAR)
    dense = Dense(name="dense", out_channels=4, accumulate="or_words", word_channels=word)
    rng = np.random.default_rng(1)
    model = random_model(Network(name="n", input=source, layers=(dense,)), rng)
    flat_model = with_flat_input(model, 64)
    assert (flat_model.network.input.height == 1) == flattened
    x = random_images(model, 9, rng)
    np.testing.assert_array_equal(flat_model.forward(x.reshape(9, *flat_model.network.input.shape)), model.forward(x))


A = CHAIN[0]
CIRCLE = "n: layers must not read each other in a circle"


def other_shapes():
    layers = (Conv(name="c", out_channels=1, kernel=(2, 2)), Subtract(name="s", inputs=("c", INPUT)))
    return Network(name="n", input=case_map(2, 3, 1), layers=layers)


def other_signs():
    network = Network(name="n", input=SOURCE, layers=(Subtract(name="s", inputs=(INPUT, INPUT)),))
    return Model(network, {"s": {"sign": np.ones(3, int)}})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(("x",)), "a: inputs must be layers of n or @input, got 'x'"),
        (lambda: chain((), ("b",)), f"{CIRCLE}, got b -> b"),
        (lambda: chain(("d",), (), (), ()), f"{CIRCLE}, got a -> b -> c -> d -> a"),
        (lambda: chain((), ("c",), ("d",), ("b",)), f"{CIRCLE}, got b -> d -> c -> b"),
        (
            lambda: chain((), (), ("a",)),
            "n: one layer must make the output and every other map be read, got no reader of b, c",
        ),
        (
            lambda: chain((), (INPUT,), (INPUT,)),
            "n: one layer must make the output and every other map be read, got no reader of a, b, c",
        ),
        (lambda: Subtract(name="s"), "s: inputs must be a tuple with the names of 2 maps, got ()"),
        (lambda: Subtract(name="s", inputs=("a",)), "s: inputs must be a tuple with the names of 2 maps, got ('a',)"),
        (lambda: replace(A, inputs=("a", "b")), "a: inputs must be a tuple with the names of 1 map, got ('a', 'b')"),
        (lambda: replace(A, inputs="a"), "a: inputs must be a tuple with the names of 1 map, got 'a'"),
        (lambda: replace(A, inputs=(1,)), "a: inputs must be a tuple with the names of 1 map, got (1,)"),
        (other_shapes, "s: maps must have one shape, got (1, 2, 1) and (2, 3, 1)"),
        (lambda: Model(chain((), ()), {"a": {}}), "a: arrays must be ['bias', 'multiplier', 'shift'], got []"),
        (other_signs, "s.sign: shape must be (2,), got (3,)"),
    ],
)
def test_graphs_that_are_refused(call, message):
    with value_error(message):
        call()


def test_bad_inputs_in_a_description():
    data = chain((), ()).to_dict()
    data["layers"][1]["inputs"] = ["z"]
    with value_error("b: inputs must be layers of n or @input, got 'z'"):
        Network.from_dict(data)
