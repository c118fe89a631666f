"""The tables executed: equal to the golden layers, and wrong as soon as the memory is one tuple too small (spec B6)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.schedule import ORDERS, StageTables, schedule

from .sequencer import convolve, image_of, old_addresses, pool, reads
from .stages import B20, network, stages_of

CASES = {
    "asymmetric": network(
        7,
        4,
        Conv(name="c", out_channels=5, kernel=(3, 2), stride=(2, 1), padding=(2, 1, 0, 1)),
        Dense(name="d", out_channels=4),
    ),
    "kernel_1": network(3, 5, Conv(name="c", out_channels=4, kernel=(1, 1))),
    "kernel_4_5": network(6, 9, Conv(name="c", out_channels=3, kernel=(4, 5), stride=(1, 3), padding=(3, 0, 1, 4))),
    "stride_above_kernel": network(
        8,
        9,
        Conv(name="c", out_channels=3, kernel=(2, 2)),
        MaxPool(name="p", kernel=(1, 2), stride=(3, 4)),
        Conv(name="e", out_channels=2, kernel=(2, 1)),
    ),
    "cut_by_borders": network(
        5,
        6,
        MaxPool(name="p", kernel=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
        AvgPool(name="a", kernel=(2, 3), stride=(1, 2), padding=(1, 2, 1, 1)),
    ),
    "whole_map": network(3, 4, Dense(name="d", out_channels=6), Dense(name="e", out_channels=3)),
    "1_x_1_map": network(1, 1, Conv(name="c", out_channels=5, kernel=(3, 3), padding=(1, 1, 1, 1))),
    "one_row": network(1, 8, Conv(name="c", out_channels=2, kernel=(2, 3), padding=(1, 2, 1, 0))),
    "window_inside_padding": network(2, 3, Conv(name="c", out_channels=2, kernel=(5, 4), padding=(4, 3, 4, 3))),
}


def random_model(case: Network, seed: int) -> tuple[Model, np.random.Generator]:
    rng = np.random.default_rng(seed)
    arrays = {
        layer.name: {key: rng.choice([-1, 1], shape) for key, shape in layer.array_shapes(source).items()}
        for layer, source in case.chain("a test")
    }
    return Model(case, arrays), rng


def run(model: Model, images: np.ndarray, map_order: str, kernels_per_group: int, ahead: int) -> None:
    """Send the images through the tables stage by stage; every stage must equal the golden layer."""
    s = schedule(stages_of(model.network), map_order)
    golden = model.trace(images)
    stream = images.reshape(len(images), -1, images.shape[3])[:, s.input_orders[0]].reshape(-1, images.shape[3])
    for (layer, source), t, wanted in zip(model.network.chain("a test"), s.tables, golden):
        if isinstance(layer, Weighted):
            reread = layer.out_channels > kernels_per_group
            image = image_of(t, t.capacity(reread) + ahead, reread)
            weight = model.arrays[layer.name]["weight"].reshape(layer.out_channels, -1, source.channels)
            stream = convolve(image, stream, weight, kernels_per_group, ahead)
        else:
            stream = pool(image_of(t, t.capacity(False) + ahead, False), stream, layer.kind, ahead)
        channels = wanted.shape[3]
        np.testing.assert_array_equal(
            stream, wanted.reshape(len(images), -1, channels)[:, t.output_order].reshape(-1, channels), layer.name
        )


@pytest.mark.sample(40)
@pytest.mark.parametrize("map_order", ORDERS)
@pytest.mark.parametrize("kernels_per_group", [1, 2, 8])
@pytest.mark.parametrize("ahead", [0, 3])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_equals_golden_layers_over_three_frames(case, map_order, kernels_per_group, ahead):
    model, rng = random_model(case, 1)
    run(model, rng.integers(-16, 16, (3, *case.input.shape)), map_order, kernels_per_group, ahead)


@pytest.mark.sample(1)
@pytest.mark.parametrize("map_order", ORDERS)
def test_b20_runs_end_to_end(map_order):
    model, rng = random_model(B20, 2)
    run(model, rng.integers(-16, 16, (1, *B20.input.shape)), map_order, 8, 0)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    height, width = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    here = Map(height=height, width=width, channels=3, encoding=signed(5))
    layers = []
    for i in range(draw(st.integers(1, 3))):
        kernel = draw(st.integers(1, 5)), draw(st.integers(1, 5))
        window = {
            "kernel": kernel,
            "stride": (draw(st.integers(1, 4)), draw(st.integers(1, 4))),
            "padding": tuple(draw(st.integers(0, k - 1)) for k in kernel * 2),
        }
        name, channels = f"layer_{i}", draw(st.integers(1, 4))
        layer = draw(
            st.sampled_from(
                [
                    Conv(name=name, out_channels=channels, **window),
                    MaxPool(name=name, **window),
                    AvgPool(name=name, **window),
                ]
            )
        )
        try:
            here_after = layer.output(here)
        except ValueError:  # the window does not fit
            layer = Dense(name=name, out_channels=channels)
            here_after = layer.output(here)
        layers.append(layer)
        here = here_after
    return network(height, width, *layers)


@given(
    networks(), st.sampled_from(ORDERS), st.integers(1, 4), st.integers(0, 5), st.integers(1, 3), st.integers(0, 2**32)
)
def test_equals_golden_layers_for_any_network(case, map_order, kernels_per_group, ahead, frames, seed):
    model, rng = random_model(case, seed)
    run(model, rng.integers(-16, 16, (frames, *case.input.shape)), map_order, kernels_per_group, ahead)


def tuples_read(t: StageTables, groups: int, capacity: int, ahead: int = 0) -> list[int]:
    """Numbers of the tuples that the tables read in two frames from a memory of any capacity, legal or not."""
    image = image_of(t, t.capacity(groups > 1) + capacity, groups > 1)
    image = replace(image, capacity=capacity, old_address=old_addresses(t) % capacity)
    stream = np.arange(2 * len(t.input_order))[:, None]
    return [int(read.value[0]) for read in reads(image, stream, groups, ahead)]


def tuples_wanted(t: StageTables, groups: int) -> list[int]:
    windows = [t.index[t.window == w].tolist() for w in range(len(t.output_order))]
    once = [number for window in windows for number in window * groups]
    return once + [number + len(t.input_order) for number in once]


@given(networks(), st.sampled_from(ORDERS), st.integers(1, 3))
def test_smallest_capacity_works_and_one_less_reads_wrong_tuples(case, map_order, groups):
    for t in schedule(stages_of(case), map_order).tables:
        least, wanted = t.capacity(groups > 1), tuples_wanted(t, groups)
        assert tuples_read(t, groups, least) == wanted
        if least > 1:
            assert tuples_read(t, groups, least - 1) != wanted


@given(networks(), st.sampled_from(ORDERS), st.integers(1, 3), st.integers(0, 4))
def test_prefetch_is_as_deep_as_the_spare_capacity_and_no_deeper(case, map_order, groups, spare):
    for t in schedule(stages_of(case), map_order).tables:
        capacity, wanted = t.capacity(groups > 1) + spare, tuples_wanted(t, groups)
        assert tuples_read(t, groups, capacity, ahead=spare) == wanted
        if spare < len(t.input_order):
            assert tuples_read(t, groups, capacity, ahead=spare + 1) != wanted


@given(networks(), st.sampled_from(ORDERS), st.integers(1, 3))
def test_places_in_the_kernel_follow_from_marks_and_targets_alone(case, map_order, groups):
    for t in schedule(stages_of(case), map_order).tables:
        image = image_of(t, t.capacity(groups > 1), groups > 1)
        got = [(r.window, r.group, r.tap, r.end) for r in reads(image, np.zeros((2 * image.tuples, 1)), groups)]
        wanted = [
            (frame * len(t.output_order) + w, group, tap, last)
            for frame in range(2)
            for w in range(len(t.output_order))
            for group in range(groups)
            for tap, last in zip(t.tap[t.window == w].tolist(), t.last[t.window == w].tolist())
        ]
        assert got == wanted
