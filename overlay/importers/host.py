"""What the host does around the accelerator: images become integers before it, integers become scores after it.

It is kept beside a model as ``NAME.host.json``:

    {"format": "bitloom host", "version": 1, "digest": "...", "input": {...}, "scores": {...}}

Both ends are chains of lines and clips, a channel, as floating-point numbers: the host computes in float64.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array
from bitloom.golden.file import model_digest
from bitloom.golden.names import shown
from bitloom.golden.network import Model
from bitloom.golden.reading.file import foreign_reason, naming
from bitloom.golden.reading.json_text import read_json

from .boundaries import Ends, Line
from .rationals import floats

FORMAT = "bitloom host"
VERSION = 1
MOST = 1 << 31
"""Beyond this no integer belongs to an input: floating-point numbers are cut to it before they become integers."""
MOST_AXES = 8
"""Axes of an image in the file at most."""

Links = tuple[tuple[str, Array, Array], ...]
"""("line", multiply, add) or ("clip", low, high), each with an array for all channels; clips may be infinite."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Host:
    """What the host does for an imported network: images become integers, and the network's integers become scores.

    Attributes
    ----------
    digest : str
        Of the model that it belongs to.
    shape : tuple of int
        Of an image as the file has it, such as (channels, rows, columns).
    order : (values,) int64
        The place of each of its values in the network's input map.
    front : Links
        What is computed before quantisation.
    boundaries : (1 or channels, levels) float64, or None
        A value's level is the number of boundaries that it has reached; None where images are integers already.
    reached : (levels,) bool, or None
        Whether equality reaches a boundary.
    first, stride : int
        A quantised value is first + stride * level. Where images are integers, first is what is added to them.
    back : Links
        What makes scores of the network's output.
    output_order : (scores,) int64
        The place of each score in the network's output map.
    closing : tuple of str
        What the file computes of the scores; it leaves their order as it is.
    """

    digest: str
    shape: tuple[int, ...]
    order: Array
    front: Links
    boundaries: Array | None
    reached: Array | None
    first: int
    stride: int
    back: Links
    output_order: Array
    closing: tuple[str, ...]

    def to_input(self, images: Array, size: tuple[int, int, int]) -> Array:
        """Images as the file has them -> what the network reads.

        Parameters
        ----------
        images : (N, *shape) numbers
        size : (int, int, int)
            Rows, columns and channels of the network's input.

        Returns
        -------
        (N, rows, columns, channels) int64

        Raises
        ------
        ValueError
            If the images have another shape, or numbers that are none.
        """
        if images.shape[1:] != self.shape:
            raise ValueError(f"images must have shape (N, {', '.join(map(str, self.shape))}), got {images.shape}")
        placed = np.empty((len(images), self.order.size), np.float64)
        placed[:, self.order] = images.reshape(len(images), -1)
        x = _through(self.front, placed.reshape(len(images), *size))
        if not np.isfinite(x).all():
            raise ValueError(f"images must give finite numbers, got {x[~np.isfinite(x)][0]}")
        if self.boundaries is None or self.reached is None:
            return np.rint(np.clip(x, -MOST, MOST)).astype(np.int64) + self.first
        return self.first + self.stride * levels(x, self.boundaries, self.reached)

    def scores(self, output: Array) -> Array:
        """What the network makes, (N, rows, columns, channels) integers -> (N, scores) float64.

        Raises
        ------
        ValueError
            If a score is not finite, so that none is the largest.
        """
        made = _through(self.back, output.astype(np.float64))
        if not np.isfinite(made).all():
            raise ValueError(f"the host's scores must be finite, got {made[~np.isfinite(made)][0]}")
        return made.reshape(len(output), -1)[:, self.output_order]

    @property
    def keeps_order(self) -> bool:
        """Whether the largest integer is always the largest score, so that nobody needs the scores for the class."""
        for kind, multiply, add in self.back:
            if kind == "clip" or (multiply != multiply[0]).any() or multiply[0] <= 0 or (add != add[0]).any():
                return False
        return np.array_equal(self.output_order, np.arange(self.output_order.size))


def levels(x: Array, boundaries: Array, reached: Array) -> Array:
    """How many boundaries each value has reached: (..., channels) -> int64."""
    out = np.empty(x.shape, np.int64)
    equal = np.append(0, np.cumsum(reached))  # of the first boundaries, those that equality reaches
    for channel in range(x.shape[-1]):
        limits, values = boundaries[channel if len(boundaries) > 1 else 0], x[..., channel]
        below, upto = (np.searchsorted(limits, values, side=side) for side in ("left", "right"))
        out[..., channel] = below + equal[upto] - equal[below]
    return out


def links(chain: Sequence[Line | Ends], channels: int) -> Links:
    """A chain of fractions as one of floating-point numbers."""
    out = []
    for link in chain:
        if isinstance(link, Line):
            out.append(("line", floats(link.multiply), floats(link.add)))
        else:
            low = -np.inf if link.low is None else float(link.low)
            high = np.inf if link.high is None else float(link.high)
            out.append(("clip", np.full(channels, low), np.full(channels, high)))
    return tuple(out)


def _through(chain: Links, x: Array) -> Array:
    with np.errstate(all="ignore"):  # whoever calls looks at what comes out
        for kind, first, second in chain:
            x = x * first + second if kind == "line" else np.clip(x, first, second)
    return x


def path_of(model: str | os.PathLike[str]) -> Path:
    """Where the file beside a model is: ``net.npz`` has ``net.host.json``."""
    return Path(model).with_suffix(".host.json")


def name_of(network: str) -> str:
    """What the file of a network is called in a build."""
    return f"{network}.host.json"


def save(host: Host, path: str | os.PathLike[str]) -> None:
    """Write the file beside a model, in one step."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "digest": host.digest,
        "input": {
            "shape": list(host.shape),
            "order": host.order.tolist(),
            "chain": _plain(host.front),
            "boundaries": None if host.boundaries is None else host.boundaries.tolist(),
            "reached": None if host.reached is None else host.reached.tolist(),
            "first": host.first,
            "stride": host.stride,
        },
        "scores": {
            "chain": _plain(host.back),
            "order": host.output_order.tolist(),
            "closing": list(host.closing),
        },
    }
    write_bytes(path, (json.dumps(data, separators=(",", ":")) + "\n").encode())


def _plain(chain: Links) -> list[list[Any]]:
    """A chain as JSON data; JSON has no infinite numbers, so a missing end is null."""
    return [
        [kind, *([None if np.isinf(v) else v for v in values.tolist()] for values in pair)] for kind, *pair in chain
    ]


def load(path: str | os.PathLike[str], model: Model) -> Host:
    """Read the file beside a model.

    Parameters
    ----------
    path : path
    model : Model

    Returns
    -------
    Host

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is damaged, or belongs to another model. One line, with the path in front.
    """
    data = read_json(path, "a host file")
    with naming(os.fspath(path)):
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(f"must be a {FORMAT} file of version {VERSION}")
        if data.get("digest") != model_digest(model):
            raise ValueError(f"must belong to the model {model_digest(model)[:12]}, got {shown(data.get('digest'))}")
        try:
            return _host(data, model)
        except (KeyError, TypeError, AttributeError, OverflowError) as e:
            raise ValueError(f"a field is missing or wrong: {type(e).__name__} {foreign_reason(e)}") from None
        except ValueError as e:  # of numbers that are text, which may be of any length
            raise ValueError(foreign_reason(e)) from None


def _host(data: Mapping[str, Any], model: Model) -> Host:
    """The checked content of a file."""
    source, scores = data["input"], data["scores"]
    network = model.network
    order, output_order = (np.array(values, np.int64).ravel() for values in (source["order"], scores["order"]))
    if sorted(order.tolist()) != list(range(network.input.size)):
        raise ValueError(f"input.order must have each place of {network.input.shape} once")
    if sorted(output_order.tolist()) != list(range(network.output.size)):
        raise ValueError(f"scores.order must have each place of {network.output.shape} once")
    shape = tuple(int(size) for size in source["shape"])
    if min(shape, default=0) < 1 or len(shape) > MOST_AXES or prod(shape) != network.input.size:
        raise ValueError(
            f"input.shape must have {network.input.size} values, and at most {MOST_AXES} axes, got {shown(shape)}"
        )
    boundaries, reached = source["boundaries"], source["reached"]
    if boundaries is not None:
        boundaries, reached = np.array(boundaries, np.float64), np.array(reached, bool)
        if boundaries.ndim != 2 or len(boundaries) not in (1, network.input.channels):
            raise ValueError(f"input.boundaries must have 1 or {network.input.channels} rows")
        if not np.isfinite(boundaries).all() or (np.diff(boundaries, axis=1) < 0).any():
            raise ValueError("input.boundaries must be finite and rise")
        if reached.shape != boundaries.shape[1:]:
            raise ValueError("input.reached must have as many entries as input.boundaries have columns")
    first, stride, encoding = int(source["first"]), int(source["stride"]), network.input.encoding
    if abs(first) > MOST:
        raise ValueError(f"input.first must be {-MOST}..{MOST}, got {shown(first)}")
    most = first if boundaries is None else first + stride * boundaries.shape[1]
    if stride != encoding.step or (boundaries is not None and not encoding.low <= first <= most <= encoding.high):
        raise ValueError(f"input.first and stride must give values of {encoding}, got {first}, {stride}")
    return Host(
        digest=str(data["digest"]),
        shape=shape,
        order=order,
        front=_links(source["chain"], network.input.channels, "input.chain"),
        boundaries=boundaries,
        reached=reached,
        first=first,
        stride=stride,
        back=_links(scores["chain"], network.output.channels, "scores.chain"),
        output_order=output_order,
        closing=tuple(str(word) for word in scores["closing"]),
    )


def _links(chain: Any, channels: int, what: str) -> Links:
    out = []
    for entry in chain:
        kind, first, second = entry
        if kind not in ("line", "clip"):
            raise ValueError(f"{what}: links must be line or clip, got {shown(kind)}")
        ends = (-np.inf, np.inf)
        pair = [
            np.array([end if v is None else float(v) for v in values]) for values, end in zip((first, second), ends)
        ]
        if kind == "line" and not all(np.isfinite(values).all() for values in pair):
            raise ValueError(f"{what}: lines must have finite numbers")
        if any(values.shape != (channels,) or np.isnan(values).any() for values in pair):
            raise ValueError(f"{what}: links must have {channels} numbers each")
        out.append((str(kind), *pair))
    return tuple(out)  # type: ignore[arg-type]
