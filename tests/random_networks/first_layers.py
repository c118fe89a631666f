"""Random networks whose first layers have few channels, as window formers take them."""

from dataclasses import replace
from typing import Any

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.golden.window import Pair
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.fuzz.pick import Pick

MOST_LANES, MOST_SIDE, MOST_TAPS = 12, 12, 5
"""Values of a kernel's row, rows and columns of a map, and rows and columns of a kernel, at most."""


def first_layer_network(pick: Pick, npu: Npu) -> Network:
    """One or two layers of few channels for the NPU's engine and any kernel, and what may follow them."""
    integer = npu.engine == "integer"
    channels = pick.integer(1, 3)
    kernel = pick.integer(1, min(MOST_LANES // channels, MOST_TAPS)), pick.integer(1, MOST_TAPS)
    integers = [signed(4), unsigned(3)] * (integer or npu.array.planes > 0)
    encoding = pick.of([*integers, *[BIPOLAR] * (not integer)])
    source = Map(
        height=pick.integer(kernel[0], MOST_SIDE),
        width=pick.integer(kernel[1], MOST_SIDE),
        channels=channels,
        encoding=encoding,
    )
    activated = pick.integer(0, 2) > 0
    exact = activated or channels % 2 == 0  # sums of ternary weights need an even number of bits
    bits = [BIPOLAR, TERNARY] if encoding == BIPOLAR and exact else [BIPOLAR]
    weight = signed(4) if integer else pick.of(bits)
    several = activated and pick.flip()
    outputs = pick.integer(1, 3 if several else 20)
    first = Conv(name="conv_1", out_channels=outputs, weight=weight, **_window(pick, source, kernel))
    layers: list[Layer] = [first]
    if activated:
        layers.append(_activation(1, integer))
        at = layers[0].output(source)
        if pick.flip() and min(at.height, at.width) > 1:
            layers.append(MaxPool(name="pool_1", kernel=(2, 2), stride=(pick.integer(1, 2), 1)))
            at = layers[-1].output(at)
        weight = signed(4) if integer else BIPOLAR
        if several:
            most = min(MOST_LANES // outputs, MOST_TAPS, at.height), min(MOST_TAPS, at.width)
            kernel = pick.integer(1, most[0]), pick.integer(1, most[1])
            at = replace(at, encoding=signed(4) if integer else BIPOLAR)
            window = _window(pick, at, kernel)
            layers += [Conv(name="conv_2", out_channels=pick.integer(1, 9), weight=weight, **window)]
            layers += [_activation(2, integer)]
        layers.append(Dense(name="dense", out_channels=pick.integer(1, 9), weight=weight))
    return Network(name="few", input=source, layers=tuple(layers))


def _window(pick: Pick, source: Map, kernel: Pair) -> dict[str, Any]:
    """A window of that kernel on the map; bits are padded one time of four, since no former pads bits."""
    padding = (0, 0, 0, 0)
    if source.encoding.kind != "bipolar" or pick.integer(0, 3) == 0:
        padding = tuple(pick.integer(0, min(2, kernel[k % 2] - 1)) for k in range(4))
    return {"kernel": kernel, "stride": (pick.integer(1, 3), pick.integer(1, 3)), "padding": padding}


def _activation(number: int, integer: bool) -> Layer:
    """The layers that make features of the sums of convolution ``number``."""
    name = f"act_{number}"
    return Requantise(name=name, encoding=signed(4)) if integer else Threshold(name=name)
