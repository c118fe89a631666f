"""Random networks whose first layer has few channels, as a window former takes them."""

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.fuzz.pick import Pick

MOST_LANES, MOST_SIDE, MOST_TAPS = 12, 12, 5
"""Values of a kernel's row, rows and columns of a map, and rows and columns of a kernel, at most."""


def first_layer_network(pick: Pick, npu: Npu) -> Network:
    """A first layer of few channels for the NPU's engine and any kernel, and what may follow it."""
    integer = npu.engine == "integer"
    channels = pick.integer(1, 3)
    kernel = pick.integer(1, min(MOST_LANES // channels, MOST_TAPS)), pick.integer(1, MOST_TAPS)
    integers = [signed(4), unsigned(3)] * (integer or npu.array.planes > 0)
    encoding = pick.of([*integers, *[BIPOLAR] * (not integer)])
    padding = (0, 0, 0, 0)
    if encoding.kind != "bipolar":
        padding = tuple(pick.integer(0, min(2, kernel[k % 2] - 1)) for k in range(4))
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
    shape = {"kernel": kernel, "stride": (pick.integer(1, 3), pick.integer(1, 3)), "padding": padding}
    layers: list[Layer] = [Conv(name="conv_1", out_channels=pick.integer(1, 20), weight=weight, **shape)]
    if activated:
        layers.append(Requantise(name="act_1", encoding=signed(4)) if integer else Threshold(name="act_1"))
        at = layers[0].output(source)
        if pick.flip() and min(at.height, at.width) > 1:
            layers.append(MaxPool(name="pool_1", kernel=(2, 2), stride=(pick.integer(1, 2), 1)))
        weight = signed(4) if integer else BIPOLAR
        layers.append(Dense(name="dense_2", out_channels=pick.integer(1, 9), weight=weight))
    return Network(name="few", input=source, layers=tuple(layers))
