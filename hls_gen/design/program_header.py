"""The part of a program's file that is JSON: all of a program but its arrays."""

from typing import Any

from numpy.typing import NDArray

from bitloom.golden.encoding import Encoding
from bitloom.golden.layer import Map
from bitloom.golden.reading.json_text import parse_json

from .reader import Reader

FORMAT = "bitloom-program"
VERSION = 2
OUTPUT_KINDS = ("raw", "bits", "signed")
LARGEST = (1 << 31) - 1
"""Heights, widths, channels and cycles at most."""


def read_header(data: NDArray[Any]) -> dict[str, Any]:
    """Fields of ``Program`` that the header holds.

    Parameters
    ----------
    data
        (n,) uint8, the JSON's bytes.

    Returns
    -------
    dict
        Name of a field -> value. ``Program`` checks what goes together.

    Raises
    ------
    ValueError
        It is no program's header. One line that begins with ``header``.
    """
    header = Reader(parse_json(data.tobytes(), "header"), "header")
    header.format(FORMAT, VERSION)
    return {
        "name": header.text("name"),
        "design_digest": header.digest("design_digest"),
        "model_digest": header.digest("model_digest"),
        "input": _map(header.inner("input")),
        "output_shape": header.numbers("output_shape", 1, LARGEST),
        "output_kind": header.text("output_kind"),
        "classes": header.texts("classes"),
        "ideal_cycles": header.number("ideal_cycles", 0),
        "layers": tuple(_layer(header, entry) for entry in header.entries("layers")),
        "mapping": header.numbers("mapping"),
    }


def _map(reader: Reader) -> Map:
    """The input map."""
    encoding = reader.inner("encoding")
    height, width, channels = (reader.number(key, 1, LARGEST) for key in ("height", "width", "channels"))
    kind = Encoding(encoding.text("kind"), encoding.number("bits", 1))
    return Map(height=height, width=width, channels=channels, encoding=kind)


def _layer(header: Reader, entry: Any) -> tuple[str, int]:
    """(name, ideal cycles) of a layer."""
    ok = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and type(entry[1]) is int
    header.require(ok, "layers must be [name, cycles]", entry)
    return entry[0], entry[1]
