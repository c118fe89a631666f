"""Several outputs as one vector: against onnxruntime's Flatten and Concat, encodings of the result, what is refused."""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.network import Model
from tests.cases import case_map, random_values
from tests.errors import value_error
from tests.graph_text import network_of

from .agreement import by_onnxruntime, check_model

HEADS = ("dense_3", "act_1", "act_2")
"""Maps that leave, in this order."""


def three_heads() -> Model:
    """A map that leaves and is read by two heads: a convolution with a stride and a dense layer."""
    first = "conv_1 3 2x1 s3, act_1 s6, conv_2 2 1x1 s3 stride=1x3, act_2 u5, dense_3 act_1 5 s3"
    network = network_of("3x4x2 s4", first, Outputs(name="outputs", inputs=HEADS), name="heads")
    rng = np.random.default_rng(1)
    shapes = {"conv_1": (3, 2, 1, 2), "conv_2": (2, 1, 1, 3), "dense_3": (5, 2, 4, 3)}
    arrays = {name: {"weight": random_values(shape, signed(3), rng)} for name, shape in shapes.items()}
    for name, count in (("act_1", 3), ("act_2", 2)):
        arrays[name] = dict(zip(("bias", "multiplier", "shift"), np.array([[1, 3, 1]] * count).T))
    return Model(network, arrays)


def test_a_network_with_three_heads(tmp_path):
    model = three_heads()
    x = random_values((3, 3, 4, 2), signed(4), np.random.default_rng(2))
    maps = dict(model.walk(x))
    nodes = [("Flatten", [name], [f"{name}f"], {}) for name in "abc"]
    inputs = dict(zip("abc", (np.ascontiguousarray(maps[name], np.int64) for name in HEADS)))
    wanted = by_onnxruntime(*nodes, ("Concat", ["af", "bf", "cf"], ["y"], {"axis": 1}), **inputs)
    output = model.network.output
    assert (output.shape, output.encoding) == ((1, 1, 5 + 24 + 8), model.network.maps["dense_3"].encoding)
    assert len(np.unique(wanted)) > 20
    check_model(model, x, wanted[:, None, None], tmp_path)


def test_what_does_not_fit_is_refused():
    with value_error("out: inputs must be a tuple with the names of 2 maps or more, got ('a',)"):
        Outputs(name="out", inputs=("a",))
    got = "bipolar 1 bit (-1..1 in steps of 2) and signed 2 bit (-2..1)"
    with value_error(f"out: bipolar maps must have one encoding, got {got}"):
        Outputs(name="out", inputs=("a", "b")).output_of([case_map(2, 3, 1, kind) for kind in (BIPOLAR, signed(2))])
