"""The addition behind the activation: what its memory holds of a layer (hls_gen/rtl/results/addition.py).

    kept * factor_kept + skipped * factor_skipped + bias --> / 2^shift, rounded --> clipped to low..high

*Kept* is the layer's own result, *skipped* the map that waits in the skip store. Golden twin: golden/layers/add.py.
"""

from typing import TYPE_CHECKING

from .parts import present

if TYPE_CHECKING:
    from .npu import Npu


def addition_row(npu: "Npu") -> list[tuple[str, int]]:
    """Row of memory ``additions``: name and width of each field, low bits first. All but ``adds``, ``shift`` and
    ``keeps`` are in two's complement. A binary NPU keeps the layer's results in the skip store where it says so."""
    skip = present(npu.stores.skip)
    return [
        ("adds", 1),
        ("factor_kept", skip.factor_bits),
        ("factor_skipped", skip.factor_bits),
        ("bias", skip.bias_bits),
        ("shift", npu.add_shift_bits),
        ("low", npu.value_bits),
        ("high", npu.value_bits),
        *([("keeps", 1)] if npu.keeps_steps else []),
    ]


def passing(npu: "Npu") -> dict[str, int]:
    """Row of a layer that adds nothing: its results are multiplied by 1, so that they leave as they came.

    Parameters
    ----------
    npu
        An NPU with a skip store.

    Returns
    -------
    dict of str to int
        All fields of the row by name.
    """
    low = -1 << npu.value_bits - 1
    return {"adds": 0, "factor_kept": 1, "factor_skipped": 0, "bias": 0, "shift": 0, "low": low, "high": ~low}
