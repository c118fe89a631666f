"""The one NPU that a network gets where nobody chose a folding: a small one of the engine that it needs."""

from dataclasses import replace

from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.lowering import input_planes
from bitloom.hls_gen.compiler.lowering_integer import stored_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import FEATURE_BITS, PLANES, bits_for

INTEGER = Npu(engine="integer", feature_bits=8, weight_bits=8, acc_bits=32, shift_bits=0, kfp=8, kgp=8, pfp=1)
"""The folding of spec B20's 8-bit engine."""


def small_npu(model: Model) -> Npu:
    """A small NPU of the engine that the network needs.

    Parameters
    ----------
    model
        The network.

    Returns
    -------
    Npu
        Of engine "integer" with features of 8 bits, or as many more as a map has, the sign counted; of engine "binary"
        with shifts for as many bit planes as the input has. What no engine has room for, the compiler refuses.
    """
    network = model.network
    made = [layer.encoding for layer in network.layers if isinstance(layer, Requantise | Add)]
    maps = [network.input.encoding, *made]
    integers = [encoding for encoding in maps if encoding.kind != "bipolar"]
    if needs_integer(model):
        widest = max(map(stored_bits, integers), default=0)
        return replace(INTEGER, feature_bits=min(max(INTEGER.feature_bits, widest), FEATURE_BITS))
    planes = min(max(map(input_planes, integers), default=1), PLANES)
    return Npu(shift_bits=max(Npu.shift_bits, bits_for(planes - 1)))


def needs_integer(model: Model) -> bool:
    """Whether the network needs the integer engine: it requantises, or has weights of several bits."""
    return any(
        isinstance(layer, Requantise) or (isinstance(layer, Weighted) and layer.weight.kind in ("signed", "unsigned"))
        for layer in model.network.layers
    )
