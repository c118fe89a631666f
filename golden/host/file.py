"""Host files: what the host computes, as JSON, beside a model as ``NAME.host.json`` and in a program's file.

{"format": "bitloom host", "version": 5, "digest": "...", "input": {...}, "outputs": [{...}, ...]}

A detector's has "detections" besides.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array
from bitloom.golden.file import model_digest
from bitloom.golden.layer import Map
from bitloom.golden.names import shown
from bitloom.golden.network import Model
from bitloom.golden.reading.file import foreign_reason, naming
from bitloom.golden.reading.json_text import parse_json, read_json

from .detections import Detections
from .host import CLOSINGS, MOST, Host, HostOutput, InputIntegers, OutputPart
from .links import KINDS, MOST_LINKS, HostLinks
from .order import from_pieces, to_pieces

FORMAT = "bitloom host"
VERSION = 5
MOST_AXES = 8
"""Axes of an image in the file at most."""
MOST_OUTPUTS = 64
"""Outputs of a file at most."""
MOST_NAME = 256
"""Characters of an output's name at most."""


def path_of(model: str | os.PathLike[str]) -> Path:
    """Where the file beside a model is: ``net.npz`` has ``net.host.json``."""
    return Path(model).with_suffix(".host.json")


def name_of(network: str) -> str:
    """Name of the host's file of a network, in a build."""
    return f"{network}.host.json"


def save(host: Host, path: str | os.PathLike[str]) -> None:
    """Write the file beside a model, in one step."""
    write_bytes(path, to_bytes(host))


def to_bytes(host: Host) -> bytes:
    """Content of the file that `save` writes: JSON and an end of line."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "digest": host.digest,
        "input": {
            "shape": list(host.shape),
            "order": to_pieces(host.order),
            "chain": _plain(host.front),
            "boundaries": None if host.boundaries is None else host.boundaries.tolist(),
            "reached": None if host.reached is None else host.reached.tolist(),
            "first": host.first,
            "stride": host.stride,
            "integers": None if host.integers is None else asdict(host.integers),
        },
        "outputs": [
            {
                "name": output.name,
                "shape": list(output.shape),
                "parts": [
                    {"first": part.first, "size": part.size, "chain": _plain(part.chain)} for part in output.parts
                ],
                "order": to_pieces(output.order),
                "closing": list(output.closing),
                "classes": output.classes,
                "apart": output.apart,
                **({} if output.constant is None else {"constant": output.constant.tolist()}),
            }
            for output in host.outputs
        ],
        **({} if host.detections is None else {"detections": asdict(host.detections)}),
    }
    return (json.dumps(data, separators=(",", ":")) + "\n").encode()


def _plain(chain: HostLinks) -> list[list[Any]]:
    """A chain as JSON data; JSON has no infinite numbers, so a missing end is null."""
    return [
        [kind, *([None if np.isinf(v) else v for v in values.tolist()] for values in pair)] for kind, *pair in chain
    ]


def load(path: str | os.PathLike[str], model: Model) -> Host:
    """Read the file beside a model.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is damaged, or belongs to another model. One line, with the path in front.
    """
    data = read_json(path, "a host file")
    with naming(os.fspath(path)):
        return _checked(data, model_digest(model), model.network.input, model.network.output)


def from_bytes(text: bytes, digest: str, source: Map, output: Map) -> Host:
    """Read what `to_bytes` made.

    Parameters
    ----------
    text : bytes
    digest : str
        Of the model that it must belong to.
    source, output : Map
        That model's input and output.

    Raises
    ------
    ValueError
        If it is damaged, or belongs to another model. One line.
    """
    return _checked(parse_json(text, "the host's part"), digest, source, output)


def _checked(data: Any, digest: str, source: Map, output: Map) -> Host:
    """A host of JSON data from anybody."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"must be a {FORMAT} file of version {VERSION}")
    if data.get("version") != VERSION:
        got = shown(data.get("version"))
        raise ValueError(f"must be a {FORMAT} file of version {VERSION}, got version {got}: import the network again")
    if data.get("digest") != digest:
        raise ValueError(f"must belong to the model {digest[:12]}, got {shown(data.get('digest'))}")
    try:
        return _host(data, source, output)
    except (LookupError, TypeError, AttributeError, OverflowError) as e:
        raise ValueError(f"a field is missing or wrong: {type(e).__name__} {foreign_reason(e)}") from None
    except ValueError as e:  # of numbers that are text, which may be of any length
        raise ValueError(foreign_reason(e)) from None


def _host(data: Mapping[str, Any], source: Map, output: Map) -> Host:
    """The checked content of a file."""
    given = data["input"]
    shape = tuple(int(size) for size in given["shape"])
    if min(shape, default=0) < 1 or len(shape) > MOST_AXES or prod(shape) != source.size:
        rule = f"input.shape must have {source.size} values, and at most {MOST_AXES} axes"
        raise ValueError(f"{rule}, got {shown(shape)}")
    boundaries, reached = _boundaries(given, source.channels)
    first = int(given["first"])
    stride = int(given["stride"])
    encoding = source.encoding
    if abs(first) > MOST:
        raise ValueError(f"input.first must be {-MOST}..{MOST}, got {shown(first)}")
    most = first if boundaries is None else first + stride * boundaries.shape[1]
    if stride != encoding.step or (boundaries is not None and not encoding.low <= first <= most <= encoding.high):
        raise ValueError(f"input.first and stride must give values of {encoding}, got {first}, {stride}")
    return Host(
        digest=str(data["digest"]),
        shape=shape,
        order=from_pieces(given["order"], source.size, "input.order"),
        front=_links(given["chain"], source.channels, "input.chain"),
        boundaries=boundaries,
        reached=reached,
        first=first,
        stride=stride,
        outputs=(outputs := _outputs(data["outputs"], output)),
        detections=_detections(data.get("detections"), outputs),
        integers=_integers(given["integers"]),
    )


def _outputs(given: Any, output: Map) -> tuple[HostOutput, ...]:
    """The file's outputs, whose parts take the network's output."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_OUTPUTS:
        raise ValueError(f"outputs must be a list of 1 to {MOST_OUTPUTS}, got {shown(given)}")
    outputs = tuple(_output(entry, output) for entry in given)
    names = [each.name for each in outputs]
    if len(set(names)) < len(names):
        raise ValueError(f"outputs must have names of their own, got {shown(names)}")
    return outputs


def _detections(given: Any, outputs: Sequence[HostOutput]) -> Detections | None:
    """The last step of a detector, checked; None where the network has none."""
    if given is None:
        return None
    names = tuple(_name(name) for name in given["names"])
    detections = Detections(**{**given, "names": names, "scales": tuple(map(float, given["scales"]))})
    detections.check([output.shape for output in outputs])
    anchors = outputs[detections.anchors].constant
    if anchors is None or (anchors.reshape(-1, 4)[:, 2:] < 0).any():
        raise ValueError("detections.anchors must be an output that is constant, with sizes >= 0")
    others = [output.name for place, output in enumerate(outputs) if place not in detections.inputs]
    if not {*names}.isdisjoint(others):
        raise ValueError(f"detections.names must be those of no other output, got {shown(names)}")
    return detections


def _name(name: Any) -> str:
    """An output's name, checked."""
    if not isinstance(name, str) or not name or len(name) > MOST_NAME or not name.isprintable():
        raise ValueError(f"outputs must have printable names of 1 to {MOST_NAME} characters, got {shown(name)}")
    return name


def _output(given: Mapping[str, Any], output: Map) -> HostOutput:
    """One of the file's outputs."""
    name = _name(given["name"])
    parts = tuple(_part(entry, output) for entry in given["parts"])
    constant = None
    values = sum(part.size for part in parts)
    if not parts:
        constant = np.array(given["constant"], np.float64)
        values = constant.size
        if constant.ndim != 1 or not values or not np.isfinite(constant).all():
            raise ValueError("outputs.constant must be a list of finite numbers")
    shape = tuple(int(size) for size in given["shape"])
    if min(shape, default=1) < 1 or len(shape) > MOST_AXES or prod(shape) != values:
        rule = f"outputs.shape must have {values} values, and at most {MOST_AXES} axes"
        raise ValueError(f"{rule}, got {shown(shape)}")
    order = from_pieces(given["order"], values, "outputs.order")
    classes = int(given["classes"])
    apart = int(given["apart"])
    if classes < 1 or apart < 1 or values % (classes * apart):
        rule = f"outputs.classes and apart must divide {values} values"
        raise ValueError(f"{rule}, got {shown(classes)}, {shown(apart)}")
    return HostOutput(
        name=name,
        shape=shape,
        parts=parts,
        order=order,
        closing=_closing(given["closing"]),
        classes=classes,
        apart=apart,
        constant=constant,
    )


def _part(given: Mapping[str, Any], output: Map) -> OutputPart:
    """A part of an output."""
    first = int(given["first"])
    size = int(given["size"])
    if first < 0 or size < 1 or first + size > output.size:
        rule = f"outputs.parts must lie in the network's output of {output.size} values"
        raise ValueError(f"{rule}, got {shown(first)}, {shown(size)}")
    chain = given["chain"]
    channels = len(chain[0][1]) if chain else 1
    if channels < 1 or size % channels:
        raise ValueError(f"outputs.chain: links must have a number for each channel of {size} values, got {channels}")
    return OutputPart(first=first, size=size, chain=_links(chain, channels, "outputs.chain"))


def _boundaries(given: Mapping[str, Any], channels: int) -> tuple[Array | None, Array | None]:
    """Where levels begin, and whether equality reaches them."""
    if given["boundaries"] is None:
        return None, None
    boundaries = np.array(given["boundaries"], np.float64)
    reached = np.array(given["reached"], bool)
    if boundaries.ndim != 2 or len(boundaries) not in (1, channels):
        raise ValueError(f"input.boundaries must have 1 or {channels} rows")
    if not np.isfinite(boundaries).all() or (np.diff(boundaries, axis=1) < 0).any():
        raise ValueError("input.boundaries must be finite and rise")
    if reached.shape != boundaries.shape[1:]:
        raise ValueError("input.reached must have as many entries as input.boundaries have columns")
    return boundaries, reached


def _integers(given: Any) -> InputIntegers | None:
    """The integers that the file's input takes."""
    if given is None:
        return None
    low = int(given["low"])
    high = int(given["high"])
    zero = int(given["zero"])
    scale = float(given["scale"])
    if not -MOST <= low <= zero <= high <= MOST or low == high:
        rule = f"input.integers must have {-MOST} <= low <= zero <= high <= {MOST} and low < high"
        raise ValueError(f"{rule}, got {shown(low)}, {shown(zero)}, {shown(high)}")
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"input.integers must have a finite scale above 0, got {shown(scale)}")
    return InputIntegers(low=low, high=high, scale=scale, zero=zero)


def _closing(words: Any) -> tuple[str, ...]:
    """The operators at the file's end that work on the scores, checked."""
    if not isinstance(words, list) or len(words) > MOST_LINKS or any(word not in CLOSINGS for word in words):
        raise ValueError(f"outputs.closing must be of {', '.join(CLOSINGS)}, got {shown(words)}")
    return tuple(words)


def _links(chain: Any, channels: int, what: str) -> HostLinks:
    """A chain, with as many numbers a link as channels."""
    if len(chain) > MOST_LINKS:
        raise ValueError(f"{what}: must have at most {MOST_LINKS} links, got {len(chain)}")
    out = []
    for entry in chain:
        kind, first, second = entry
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"{what}: links must be {' or '.join(KINDS)}, got {shown(kind)}")
        ends = (-np.inf, np.inf)
        pair = [
            np.array([end if v is None else float(v) for v in values]) for values, end in zip((first, second), ends)
        ]
        if KINDS[kind].finite and not all(np.isfinite(values).all() for values in pair):
            raise ValueError(f"{what}: {kind}s must have finite numbers")
        if any(values.shape != (channels,) or np.isnan(values).any() for values in pair):
            raise ValueError(f"{what}: links must have {channels} numbers each")
        out.append((kind, pair[0], pair[1]))
    return tuple(out)
