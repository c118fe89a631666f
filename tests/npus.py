"""NPUs of tests."""

from typing import Any

from bitloom.hls_gen.design.npu import Npu


def integer_npu(feature_bits: int, weight_bits: int, acc_bits: int = 32, **more: Any) -> Npu:
    """An NPU of the integer engine, for features, weights and sums of so many bits; ``more`` as for ``Npu.of``."""
    bits = {"feature_bits": feature_bits, "weight_bits": weight_bits, "acc_bits": acc_bits}
    return Npu.of(engine="integer", shift_bits=0, **bits, **more)
