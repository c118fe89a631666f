"""Rules of an NPU's fields: one line that says field, rule and value."""

from typing import Any

from bitloom.golden.names import printable


def require(ok: bool, rule: str, value: Any) -> None:
    """ValueError ``npu: rule, got value`` unless ``ok``; a long value is cut."""
    if not ok:
        raise ValueError(f"npu: {rule}, got {printable(str(value))}")
