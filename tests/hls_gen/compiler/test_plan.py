import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import DATAFLOWS, CompileChoices
from bitloom.hls_gen.compiler.needs import OF_ALL_LAYERS
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.design.flat import CAPACITIES
from tests.cases import case_map, random_model
from tests.errors import value_error
from tests.rows import memory_rows, npu_rows

from .foldings import CASES, ORDERS, npu_of
from .test_depthwise import NPU as WITH_WEIGHTS
from .test_depthwise import conv as weighted
from .test_depthwise import depthwise
from .test_depthwise import model_of as model_of_depthwise
from .test_lookups import NPU as WITH_LOOKUPS
from .test_lookups import model as looking_up


def model_of(*layers: Layer, size: tuple[int, int] = (4, 6), channels: int = 5, encoding: Encoding = BIPOLAR) -> Model:
    network = Network(name="net", input=case_map(*size, channels, encoding), layers=layers)
    return random_model(network, np.random.default_rng(0))


def conv(kernel: tuple[int, int], stride: tuple[int, int] = (1, 1), **more: object) -> Conv:
    return Conv(**{"name": "conv", "out_channels": 4, "kernel": kernel, "stride": stride, **more})


ACT = Threshold(name="act")


def planned(model: Model, map_order: str = "pull", folding: str = "k3_g5") -> Plan:
    return plan(model, [npu_of(folding)], CompileChoices(map_order=map_order))


def test_every_capacity_is_a_need():
    """But for what follows from all layers together: from the values that they read (sharing.py), and from maps that
    wait (`Needs.capacities`)."""
    small = model_of_depthwise(*weighted(1, size=3), *depthwise(2), channels=1)
    added = looking_up("act_1, act_2, lookup act_3 s9, add sum_3 act_3 act_1 s8")
    plans = (
        plan(small, [WITH_WEIGHTS.changed(window_former=True, aheads=2)]),
        plan(added, [WITH_LOOKUPS.changed(skip_words=2)]),
    )
    needed = {name for network_plan in plans for name in network_plan.needs[0].needs.sizes}
    together = {*OF_ALL_LAYERS, "skip_words", "skips_onward"}
    assert {*CAPACITIES} - needed == together, "needs_of of hls_gen/compiler/needs.py, needs of actions"


@pytest.mark.parametrize("map_order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_counts_agree(name, map_order):
    """Every table has an entry for each tap, and says where each layer's part begins."""
    network_plan = planned(CASES[name], map_order)
    layers = npu_rows(network_plan)
    bases = memory_rows(network_plan)
    for prefix in ("", "pool_"):
        for number, rows in enumerate(layers):
            if rows.count(f"{prefix}flags"):
                row = bases[f"{prefix}layers"][number]
                flags = rows.memories[f"{prefix}flags"]
                last, new = flags["last"], flags["new"]
                assert row["flags_base"] == sum(before.count(f"{prefix}flags") for before in layers[:number])
                assert last.sum() == row["windows_minus_1"] + 1
                assert rows.count(f"{prefix}olds") == (new == 0).sum()
                assert rows.count(f"{prefix}jumps") == flags.get("jump", new * 0).sum()
                assert not (flags.get("skip", new * 0) & ~new & 1).any()
                words = rows.row(f"{prefix}inputs")["words"]
                assert new.sum() * (row["words_minus_1"] + 1) == words
                assert (rows.memories[f"{prefix}olds"]["word"] < words).all()
    assert sum(rows.count("kernels") for rows in layers) == network_plan.needs[0].needs.sizes["kernel_rows"]


@pytest.mark.parametrize(
    ("layers", "map_order", "conv_taps", "pool_taps"),
    [
        ([Dense(name="dense", out_channels=3)], "pull", 24, None),
        ([conv((1, 1)), ACT], "raster", 1, 1),
        ([conv((1, 1), (2, 3)), ACT], "pull", 1, 1),
        ([conv((2, 3), (2, 3)), ACT], "pull", 6, 1),
        ([conv((2, 3), (2, 3)), ACT], "raster", None, 1),
        ([conv((2, 2)), ACT], "pull", None, 1),
        ([conv((2, 2), (2, 2), padding=(0, 0, 0, 1)), ACT], "pull", 4, 1),  # the padding is never reached
        ([conv((2, 2), (2, 2), padding=(1, 0, 1, 0)), ACT], "pull", None, 1),
        ([conv((2, 2), (2, 2), weight=TERNARY), ACT], "pull", None, 1),  # second visits are old reads
        ([conv((1, 1)), ACT, MaxPool(name="pool", kernel=(2, 3), stride=(2, 3))], "pull", 1, 6),
        ([conv((1, 1)), ACT, MaxPool(name="pool", kernel=(2, 3), stride=(2, 3))], "raster", 1, None),
        ([conv((1, 1)), ACT, MaxPool(name="pool", kernel=(2, 3), stride=(1, 3))], "pull", 1, None),
        ([conv((4, 6)), ACT, MaxPool(name="pool", kernel=(2, 2), stride=(1, 1), padding=(1, 1, 0, 0))], "pull", 24, 1),
    ],
)
def test_direct_where_no_table_is_needed(layers, map_order, conv_taps, pool_taps):
    """conv_taps, pool_taps: of a window in direct mode, None: by tables."""
    network_plan = planned(model_of(*layers), map_order)
    (rows,) = npu_rows(network_plan)
    for prefix, taps in (("", conv_taps), ("pool_", pool_taps)):
        if f"{prefix}layers" in rows.memories:
            row = rows.row(f"{prefix}layers")
            assert row["direct"] == (taps is not None)
            assert row["window_taps_minus_1"] == (taps or 1) - 1
            assert rows.count(f"{prefix}flags") == 0 or taps is None


def test_shifts_must_reach_the_highest_plane():
    model = model_of(conv((2, 2)), encoding=signed(5))
    assert plan(model, [npu_of("k3_g5").changed(shift_bits=3)]).lowered.input_bits == 5
    with value_error("net: an input of 5 bit planes needs shifts up to 4, the NPU has shift_bits = 2"):
        plan(model, [npu_of("k3_g5").changed(shift_bits=2)])
    four_bits = plan(model_of(conv((2, 2)), encoding=signed(4)), [npu_of("k3_g5").changed(shift_bits=2)])
    assert four_bits.layers[0].read.codes.max() == 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"map_order": "random"}, "map_order must be one of pull, raster, columns, auto, got 'random'"),
        ({"dataflow": 3}, f"dataflow must be one of {', '.join(DATAFLOWS)}, got 3"),
        ({"dataflow": ["auto"]}, f"dataflow must be one of {', '.join(DATAFLOWS)}, got ['auto']"),
        ({"dataflow": {"conv_1": None}}, f"dataflow must be one of {', '.join(DATAFLOWS)}, got None"),
        ({"chunk": 2}, "chunk must be a text, got 2"),
        ({"shortcuts": True}, "shortcuts must be one of first, last, got True"),
        ({"copy_depthwise": "no"}, "copy_depthwise must be true or false, got 'no'"),
        ({"repeat_input": "no"}, "repeat_input must be true or false, got 'no'"),
    ],
)
def test_choices_that_mean_nothing_are_refused_as_they_are_made(choice, message):
    with value_error(message):
        CompileChoices(**choice)
