"""Rules of an NPU's fields: one line that says field, rule and value."""

from typing import Any


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
