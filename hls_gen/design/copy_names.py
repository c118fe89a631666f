"""Names of copies: where an NPU needs a map more often, or in another order, than it comes, an identity kernel copies
it (hls_gen/compiler/copies.py, store_copies.py), a layer of its own in a program. conv_1@2 is the map of conv_1 on
NPU 2, conv_1@2.2 the second copy there."""

import re

MARK = "@"
"""No layer of a network has it in its name (golden/names.py)."""


def copy_name(layer: str, npu: int, number: int = 1) -> str:
    """Name of a copy of a layer's map on an NPU, where copies of it are counted from 1."""
    return f"{layer}{MARK}{npu}" + (f".{number}" if number > 1 else "")


def copied(name: str, npu: int) -> str:
    """Name of the layer whose map a copy on this NPU makes; of another layer its own."""
    layer, _, _ = name.partition(MARK)
    number = r"(\.([2-9]|[1-9][0-9]{1,5}))?"
    return layer if re.fullmatch(re.escape(copy_name(layer, npu)) + number, name) else name


def is_copy(name: str) -> bool:
    """Whether a layer of a program is a copy."""
    return MARK in name
