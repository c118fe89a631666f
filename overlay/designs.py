"""Reference designs: which network on how parallel a piece of hardware; those of the demo and of the figures."""

from dataclasses import dataclass

from golden.conv import Weighted
from golden.network import Model
from golden.requantise import Requantise
from hls_gen.design import Npu

DIGITS = Npu(kfp=32, kgp=16, pfp=16, ol=4, planes=6)
"""digits-cnn: conv_1 reads 5-bit pixels as 6 bit planes side by side."""

INTEGER = Npu(kind="integer", feature_bits=8, weight_bits=8, acc_bits=32, shift_bits=0, kfp=8, kgp=8, pfp=1)
"""Spec B20's folding of the 8-bit engine."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A design that figures are given for. network : name for networks.load.  folding, stream_bits, order : as for
    fit.
    """

    network: str
    folding: Npu
    stream_bits: int = 32
    order: str = "auto"


REFERENCES: dict[str, Reference] = {
    "digits-cnn": Reference(network="digits-cnn", folding=DIGITS),
    "cifar-quick-int8": Reference(network="cifar-quick-int8", folding=INTEGER, order="pull"),
}


def folding(model: Model) -> Npu:
    """The folding that a network has by default: its reference design's, else a small one of the engine it needs."""
    if model.network.name in REFERENCES:
        return REFERENCES[model.network.name].folding
    return INTEGER if needs_integer(model) else Npu()


def needs_integer(model: Model) -> bool:
    """Whether a layer requantises or has weights of several bits, which the binary engine can't compute."""
    return any(
        isinstance(layer, Requantise) or (isinstance(layer, Weighted) and layer.weight.kind in ("signed", "unsigned"))
        for layer in model.network.layers
    )
