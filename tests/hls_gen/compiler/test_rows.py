"""Rows of layers: each layer's by itself, several layers one behind the other, wide fields, counts that must agree."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.hls_gen.compiler.needs import needs_of
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.rows import memories
from bitloom.hls_gen.compiler.rows.memories import kernels_in_turn, npu_columns, rows_of
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from tests.networks import random_model
from tests.rows import npu_rows

from .graph_cases import residual
from .test_residual import NPU

LAYERS = "conv_1 @input kernel=3, conv_2 act_1 kernel=3, conv_3 act_2"


def test_rows_of_a_layer_know_nothing_of_other_layers():
    """Two layers with one window have the same table; where it begins is said when layers follow one another."""
    network_plan = plan(random_model(residual(LAYERS), 1, 32), [NPU])
    first, second, third = npu_rows(network_plan)
    assert first.count("flags") == second.count("flags") > third.count("flags") == 0
    for name in ("flags", "olds"):
        for field, column in first.memories[name].items():
            np.testing.assert_array_equal(column, second.memories[name][field])
    assert not {name for name in first.row("layers") if name.endswith("_base")}
    layers = npu_columns([first, second, third], network_plan.foldings[0], kernels_in_turn([first, second, third], 5))[
        "layers"
    ]
    count = first.count("flags")
    assert layers["flags_base"].tolist() == [0, count, 0], "the last layer has no row there"
    assert layers["kernel_base"].tolist() == [5, 5 + first.count("kernels"), 5 + 2 * first.count("kernels")]


def test_another_number_of_rows_than_needed_is_a_mistake(monkeypatch):
    network_plan = plan(random_model(residual(LAYERS), 1, 32), [NPU])
    planned = network_plan.layers[2]
    needs = needs_of(planned)
    needs = replace(needs, sizes={**needs.sizes, "olds": 7})
    monkeypatch.setattr(memories, "needs_of", lambda planned: needs)
    with pytest.raises(AssertionError, match=r"^conv_3: 7 rows of olds are needed, 0 are made$"):
        rows_of(planned)


def test_sums_that_leave_read_no_thresholds():
    """Of digits-cnn the last layer's sums leave: its row has the mark alone."""
    model = zoo.load("digits-cnn")
    (npu,) = size_memories("d", [model], Npu.of()).npus
    layers = npu_rows(plan(model, [npu]))
    assert [layer.row("results")["raw"] for layer in layers] == [0, 0, 0, 1]
    assert [layer.count("thresholds") > 0 for layer in layers] == [True, True, True, False]
