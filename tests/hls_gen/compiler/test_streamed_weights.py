"""Where streamed weights lie and when they come: nothing is overwritten in use, nothing waits for ever."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitloom.hls_gen.compiler.streamed_weights import (
    Placement,
    StreamBlocked,
    WeightLayer,
    WeightStream,
    check_placement,
    estimated_cycles,
)
from bitloom.hls_gen.compiler.weight_placement import place
from tests.errors import value_error

STREAM = WeightStream(bits=32, row_words=16, frame_words=2048, absorbed=True)
B20_LAYERS = {"conv_1": (100, 94864), "conv_2": (400, 87616), "conv_3": (800, 36992), "fc_1": (1024, 1024)}
B20 = [WeightLayer(name, *sizes) for name, sizes in {**B20_LAYERS, "fc_2": (16, 16)}.items()]
IDEAL = sum(layer.beats for layer in B20)
ABC = [WeightLayer("a", 4, 100), WeightLayer("b", 5, 100), WeightLayer("c", 3, 100)]


def test_all_stay_where_there_is_room():
    placement = place("n", B20, 2340, STREAM)
    assert placement == Placement(base=(0, 100, 500, 1300, 2324))
    assert estimated_cycles(B20, placement, STREAM) == IDEAL


def test_two_of_the_largest_layers():
    """B20 in 2,048 rows: only conv_2 and fc_1 are streamed, while other layers are computed."""
    placement = place("n", B20, 2048, STREAM)
    assert (placement.streamed, placement.ahead) == ((1, 3), (0, 0))
    assert estimated_cycles(B20, placement, STREAM) == IDEAL


@pytest.mark.parametrize("depth", [1024, 1200, 1824, 1940])
def test_less_room_costs_time(depth):
    placement = place("n", B20, depth, STREAM)
    words = sum(4 + 16 * B20[i].rows for i in placement.streamed) + 4 + 2048
    time = estimated_cycles(B20, placement, STREAM)
    assert IDEAL <= time < IDEAL + words
    if depth >= 1940:
        assert time == IDEAL


def test_a_layer_that_is_too_large():
    with value_error("n: kernel_rows must be >= 1024 for fc_1, got 1023"):
        place("n", B20, 1023, STREAM)


def test_an_odd_number_of_layers():
    """Two neighbours share an end of the memory; ``ahead`` makes the second one wait for the first."""
    rest = Placement(base=(0, 4, 0), streamed=(0, 1, 2), ahead=(0, 1, 1), before=1)
    check_placement("n", ABC, rest, 9, STREAM)
    with value_error("n: the weights of a must wait until c is done, got ahead = 1 where they share rows"):
        check_placement("n", ABC, replace(rest, ahead=(1, 1, 1)), 9, STREAM)
    with value_error("n: the weights of c must wait until a is done, got ahead = 2 where they share rows"):
        check_placement("n", ABC, replace(rest, ahead=(0, 1, 2)), 9, STREAM)


BLOCKS = "n: the order of the stream must not block, got"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": (0, 4, 7)}, "n: c must lie in rows 0..8, got 7..9"),
        ({"base": (-1, 4, 0)}, "n: a must lie in rows 0..8, got -1..2"),
        ({"streamed": (0, 1), "ahead": (0, 1)}, "n: a resident layer must share no row, got a and c"),
        ({"ahead": (0, 1, 3)}, "n: the weights of c must wait until a is done, got ahead = 3 where they share rows"),
        ({"before": 0}, f"{BLOCKS} frame 0 before the weights of a, which it waits for"),
        ({"before": 3}, f"{BLOCKS} the weights of c before frame 0, which it waits for"),
    ],
)
def test_every_rule(change, message):
    good = Placement(base=(0, 4, 0), streamed=(0, 1, 2), ahead=(0, 1, 1), before=1)
    check_placement("n", ABC, good, 9, STREAM)
    with value_error(message):
        check_placement("n", ABC, replace(good, **change), 9, STREAM)


def test_weights_after_the_frame_that_needs_them():
    placement = Placement(base=(0, 4, 0), streamed=(0, 1, 2), ahead=(0, 1, 1), before=0)
    with pytest.raises(StreamBlocked, match=r"^frame 0 before the weights of a, which it waits for$"):
        estimated_cycles(ABC, placement, STREAM)


def run(layers, placement, depth, absorbed, rng, frames=5):
    """Loader and engine, a random one of them at a time: what each row holds when it is read. None left waiting."""
    count = len(placement.streamed)
    rows = [None] * depth
    for i, layer in enumerate(layers):
        if i not in placement.streamed:
            rows[placement.base[i] : placement.base[i] + layer.rows] = [(i, None)] * layer.rows
    items = []
    for frame in range(frames):
        part = [(i, frame, placement.ahead[s]) for s, i in enumerate(placement.streamed)]
        items += [*part[: placement.before], (None, frame, 0), *part[placement.before :]]
    done, unfinished = 0, 0
    ready = set()
    place_in, taken = 0, 0
    words = {frame: 0 for frame in range(frames)}  # of 4 of each frame
    while done < frames * len(layers):
        moves = []
        if place_in < len(items):
            layer, frame, ahead = items[place_in]
            if layer is None:
                # the tuple memory takes a frame once it is its turn: whole, or its last word when layer 0 has the rest
                turn = done >= frame * len(layers) - 1
                if turn and (words[frame] < 3 or absorbed or taken == frame * 4 + 3):
                    moves.append("frame")
            elif unfinished <= ahead:
                moves.append("weights")
        frame, layer = divmod(done, len(layers))
        if layer in placement.streamed and (layer, frame) not in ready:
            pass
        elif layer == 0 and taken < frame * 4 + 4:
            if words[frame] > taken - frame * 4:
                moves.append("tap")
        else:
            moves.append("layer")
        assert moves, f"stuck at item {place_in} of the stream, layer {done}"
        move = rng.choice(moves)
        if move == "frame":
            words[items[place_in][1]] += 1
            place_in += words[items[place_in][1]] == 4
        elif move == "weights":
            layer, frame, _ = items[place_in]
            rows[placement.base[layer] : placement.base[layer] + layers[layer].rows] = [(layer, frame)] * layers[
                layer
            ].rows
            ready.add((layer, frame))
            place_in, unfinished = place_in + 1, unfinished + 1
        elif move == "tap":
            taken += 1
        else:
            held = {rows[placement.base[layer] + k] for k in range(layers[layer].rows)}
            assert held == {(layer, frame if layer in placement.streamed else None)}
            done = done + 1
            unfinished = unfinished - (layer in placement.streamed)
    assert place_in == len(items)
    assert unfinished == 0
    return count


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3000)), min_size=1, max_size=9), st.data())
def test_any_network_in_any_memory(sizes, data):
    """Every order of events: rows hold a layer's weights when it reads them, and all come to their end."""
    layers = [WeightLayer(f"layer_{i}", rows, beats) for i, (rows, beats) in enumerate(sizes)]
    largest = max(rows for rows, _ in sizes)
    total = sum(rows for rows, _ in sizes)
    depth = data.draw(st.integers(largest, total))
    stream = replace(STREAM, absorbed=data.draw(st.booleans()), frame_words=data.draw(st.integers(1, 5000)))
    placement = place("n", layers, depth, stream)
    assert (placement.streamed == ()) == (depth == total)
    assert estimated_cycles(layers, placement, stream) >= sum(beats for _, beats in sizes)
    for seed in range(3):
        run(layers, placement, depth, stream.absorbed, random.Random(seed))


def test_many_layers_take_no_time():
    layers = [WeightLayer(f"layer_{i}", 1 + i * 7 % 23, 100 + i * 37 % 900) for i in range(40)]
    placement = place("n", layers, 60, STREAM)
    run(layers, placement, 60, True, random.Random(1))
