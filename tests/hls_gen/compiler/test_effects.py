"""Choices of compiling without effect are refused, and those that NPUs can't have; one network that uses a choice is
enough."""

from dataclasses import replace
from typing import Any

import pytest

from bitloom.golden import zoo
from bitloom.golden.layers.add import Add
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.topology import ring
from bitloom.overlay.build.reference_designs import DIGITS
from tests.errors import value_error

from .test_depthwise import INT8, NPU, conv, depthwise, model_of

COPY = "a depthwise convolution that has no convolution right before it, and NPUs with depthwise"
LAST = "an addition of two ways from one map, with convolutions on both and no other map that waits"
DEPTHWISE = model_of(*depthwise(1), *conv(2))
"""Its first layer may follow a copy."""


def residual() -> Model:
    """A block of ResNet with a convolution on its shortcut."""
    layers = [*conv(1), *conv(2), *conv(3), *conv(4), Add(name="add", encoding=INT8, inputs=("act_3", "act_4"))]
    reads = {"conv_2": ("act_1",), "conv_3": ("act_2",), "conv_4": ("act_1",)}
    return model_of(*(replace(layer, inputs=reads.get(layer.name, layer.inputs)) for layer in layers))


LAYERS = "conv_1, conv_2, conv_3, dense_4"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"copy_depthwise": True}, f"d: copy_depthwise true needs {COPY}, got none"),
        ({"shortcuts": "last"}, f"d: shortcuts last needs {LAST}, got none"),
        ({"dataflow": {"conv_9": "auto"}}, f"d: a dataflow must be of one of {LAYERS}, got one of conv_9"),
    ],
)
def test_no_network_uses_it(values: dict[str, Any], message: str) -> None:
    with value_error(message):
        size_memories("d", [zoo.load("digits-cnn")], DIGITS, CompileChoices(**values))


def test_only_a_pool_unit_with_weights_computes_behind_copies() -> None:
    choices = CompileChoices(copy_depthwise=True)
    with value_error(f"d: copy_depthwise true needs {COPY}, got none"):
        size_memories("d", [DEPTHWISE], NPU.changed(depthwise=False), choices)
    assert size_memories("d", [DEPTHWISE], NPU, choices).npus[0].depthwise


def test_a_layer_that_the_pool_unit_computes_has_no_dataflow() -> None:
    choices = CompileChoices(copy_depthwise=True, dataflow={"conv_1": "auto"})
    with value_error("d: a dataflow must be of one of conv_1_copy, conv_2, got one of conv_1"):
        size_memories("d", [DEPTHWISE], NPU, choices)
    size_memories("d", [DEPTHWISE], NPU, replace(choices, dataflow={"conv_1_copy": "auto"}))


def test_one_network_of_several_uses_each() -> None:
    choices = CompileChoices(copy_depthwise=True, shortcuts="last")
    models = [DEPTHWISE, residual()]
    size_memories("d", models, NPU, choices)
    with value_error(f"d: shortcuts last needs {LAST}, got none"):
        size_memories("d", models[:1], NPU, choices)
    with value_error(f"d: copy_depthwise true needs {COPY}, got none"):
        size_memories("d", models[1:], NPU, choices)


def test_shortcuts_that_cannot_be_last_on_a_ring() -> None:
    model = residual()
    npus = ring([NPU] * 2)
    plan(model, npus)
    with value_error(
        "net: shortcuts must be first on these NPUs, got last: "
        "conv_2: NPU 1 must have an outlet to NPU 1, got ring, host"
    ):
        plan(model, npus, CompileChoices(shortcuts="last"))
