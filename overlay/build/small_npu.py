"""The one NPU that a network gets where nobody chose a folding: a small one of the engine that it needs."""

from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.compiler.workloads import engines_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import SerialPopcount
from bitloom.hls_gen.design.widths import FEATURE_BITS, PLANES, bits_for

INTEGER = Npu.of(engine="integer", feature_bits=8, weight_bits=8, acc_bits=32, shift_bits=0, kfp=8, kgp=8, pfp=1)
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
    features = [layer.encoding for layer in network.layers if isinstance(layer, FeatureLayer)]
    maps = [network.input.encoding, *features]
    integers = [encoding for encoding in maps if encoding.kind != "bipolar"]
    if "integer" in engines_of(network):
        widest = max(map(stored_bits, integers), default=0)
        return INTEGER.changed(feature_bits=min(max(INTEGER.array.feature_bits, widest), FEATURE_BITS))
    return Npu.of(shift_bits=max(SerialPopcount.shift_bits, plane_shift_bits(network)))


def plane_shift_bits(network: Network) -> int:
    """Bits of the shifts that a binary NPU needs for the bit planes of the network's input; 0 if the input has none."""
    source = network.input.encoding
    return 0 if source.kind == "bipolar" else bits_for(min(stored_bits(source), PLANES) - 1)
