"""Rules of an NPU's fields: one line that says field, rule and value."""

from typing import Any

from .packed_products import most_kernels
from .widths import MULTIPLIER_BITS, RECIPROCAL_BITS

LUT_PRODUCTS = ("addition",)
"""Units that may multiply in LUTs within 8 levels."""


def require(ok: bool, rule: str, value: Any) -> None:
    """ValueError ``npu: rule, got value`` unless ``ok``."""
    if not ok:
        raise ValueError(f"npu: {rule}, got {value}")


def check_least(of: object, name: str, least: int) -> None:
    """ValueError unless the attribute ``name`` is an integer >= ``least``."""
    value = getattr(of, name)
    require(type(value) is int and value >= least, f"{name} must be an integer >= {least}", repr(value))


def check_power(of: object, name: str) -> None:
    """ValueError unless the attribute ``name``, an integer, is a power of two >= 2."""
    value = getattr(of, name)
    require(value >= 2 and not value & (value - 1), f"{name} must be a power of two >= 2", value)


def check_depthwise(of: Any) -> None:
    """ValueError unless the NPU can have a pool unit with weights, where it has ``depthwise``."""
    if not of.depthwise:
        return
    got = f"engine {of.engine}, {'a' if of.pool else 'no'} pool unit"
    require(of.engine == "integer" and of.pool, "depthwise needs engine integer and a pool unit", got)
    most = MULTIPLIER_BITS - RECIPROCAL_BITS + 7  # a reciprocal is a multiplier
    require(of.feature_bits <= most, f"feature_bits must be <= {most} for depthwise", of.feature_bits)
    require(of.pfp % of.ol == 0, f"ol must divide pfp = {of.pfp} for depthwise", of.ol)


def check_packing(of: Any) -> None:
    """ValueError unless a multiplier can take the weights of kernels_per_multiplier kernels, and lut_products are some
    of LUT_PRODUCTS."""
    name = "kernels_per_multiplier"
    kernels = of.kernels_per_multiplier
    check_least(of, name, 1)
    require(kernels == 1 or of.engine == "integer", f"{name} must be 1 for engine binary", kernels)
    require(kernels <= of.kgp, f"{name} must be <= kgp = {of.kgp}", kernels)
    most = most_kernels(of.feature_bits, of.weight_bits)
    sizes = f"features of {of.feature_bits} and weights of {of.weight_bits} bits"
    require(kernels <= most, f"{name} must be 1..{most} for {sizes}", kernels)
    chosen = of.lut_products
    known = LUT_PRODUCTS if of.engine == "integer" else ()
    rule = f"lut_products must be some of {', '.join(known)}, in this order" if known else "lut_products must be empty"
    require(isinstance(chosen, tuple) and tuple(one for one in known if one in chosen) == chosen, rule, chosen)
