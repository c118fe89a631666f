"""Rules of an NPU's fields: one line that says field, rule and value."""

from typing import Any


def require(ok: bool, rule: str, value: Any) -> None:
    """ValueError ``npu: rule, got value`` unless ``ok``."""
    if not ok:
        raise ValueError(f"npu: {rule}, got {value}")
