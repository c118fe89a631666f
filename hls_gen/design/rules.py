"""Rules of an NPU's fields: one line that says field, rule and value."""

from dataclasses import fields
from typing import Any


def require(ok: bool, rule: str, value: Any) -> None:
    """ValueError ``npu: rule, got value`` unless ``ok``."""
    if not ok:
        raise ValueError(f"npu: {rule}, got {value}")


def check_least(part: object, name: str, least: int, flat: str = "") -> None:
    """ValueError unless the attribute ``name`` is an integer >= ``least``; messages call it ``flat``, if given."""
    value = getattr(part, name)
    require(type(value) is int and value >= least, f"{flat or name} must be an integer >= {least}", repr(value))


def check_power(part: object, name: str, flat: str = "") -> None:
    """ValueError unless the attribute ``name`` is a power of two >= 2; messages call it ``flat``, if given."""
    value = getattr(part, name)
    check_least(part, name, 1, flat)
    require(value >= 2 and not value & (value - 1), f"{flat or name} must be a power of two >= 2", value)


def check_bools(part: Any) -> None:
    """ValueError unless every field of a dataclass that is False or True by default is one of these."""
    for item in fields(part):
        value = getattr(part, item.name)
        if type(item.default) is bool:
            require(isinstance(value, bool), f"{item.name} must be True or False", repr(value))
