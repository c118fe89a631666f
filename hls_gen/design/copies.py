"""Names of copies: where an NPU needs a map for more than the next layer's reading, an identity kernel takes it there
(hls_gen/compiler/copies.py), a layer of its own in a program. conv_1@2 is the map of conv_1 on NPU 2."""

MARK = "@"
"""No layer of a network has it in its name (golden/names.py)."""


def copy_name(layer: str, npu: int) -> str:
    """Name of the copy of a layer's map on an NPU."""
    return f"{layer}{MARK}{npu}"


def copied(name: str, npu: int) -> str:
    """Name of the layer whose map a copy on this NPU makes; of another layer its own."""
    layer, _, _ = name.partition(MARK)
    return layer if name == copy_name(layer, npu) else name


def is_copy(name: str) -> bool:
    """Whether a layer of a program is a copy."""
    return MARK in name
