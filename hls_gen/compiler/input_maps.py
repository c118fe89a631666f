"""Names of the maps that come from the host: the network's input, once for each layer that reads it.

An NPU's inlet "host" hands each word on once. So where several layers read the input, the frame has its words for one
after the other, in the order in which the layers are computed (`CompileChoices.repeat_input`).
"""

from bitloom.golden.graph import INPUT


def input_name(number: int) -> str:
    """Name of the input as the layer reads it that is number ``number`` of those that do."""
    return f"{INPUT}.{number}" if number else INPUT


def is_input(name: str) -> bool:
    """Whether a map is the network's input, as one of its readers gets it."""
    return name.startswith(INPUT)
