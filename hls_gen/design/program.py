"""A network compiled for a design: what the driver sends and how it reads the answer.

Format: docs/reference/device.md, "Program". The file is a plain zip of .npy arrays, stored without compression and
without a date, so equal programs are equal bytes. The last array is a digest of the others: a program that was damaged
or changed is refused, also where the zip's own checksums are right. Who writes a program of their own gives it a digest
of its own.
"""

import json
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden import file as model_file
from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.graph import INPUT
from bitloom.golden.host import file as host_file
from bitloom.golden.host.host import Host
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.limits import TAPS
from bitloom.golden.names import check_classes, check_layer_names, check_name
from bitloom.golden.network import Model, Network
from bitloom.golden.reading.archive import Archive, read_archive
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import parse_json

from .array_file import array_bytes, array_digest, arrays_of, check_digest
from .compiled_network import OUTPUT, CompiledNetwork, MapChannels, Turn
from .copy_names import copied, is_copy
from .design import STREAM_WIDTHS
from .frame_layout import RESULT_KINDS, FrameLayout, ResultMap
from .program_host import read_host, read_tail
from .reader import Reader

FORMAT = "bitloom-program"
VERSION = 3
LARGEST = (1 << 31) - 1
"""Heights, widths, channels and cycles at most."""
ARRAYS = ("parameters", "frame_positions", "frame_lanes", "result_maps", "result_places")
"""Arrays that each program's file has, beside its header and its digest."""
TOGETHER = (("weights", "weights_before"), ("host",), ("tail",))
"""Arrays of a program's file that are not in all of them, those of a group together."""
MOST_VALUES = 1 << 26
"""Values of a frame's results at most."""
FRAME_NUMBERS = ("channels", "lane_bits", "word_bits")
"""Fields of a frame's layout that stand in the header."""
MOST_WORDS = 1 << 24
"""32-bit words of a frame, or of its results, at most: a file that says more would fill any memory."""
CHUNK_WORDS = 1 << 15
"""Words of frames, or of results, that are made or read at a time: 128 KB. More are slower (caches)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Program(CompiledNetwork["Program"]):
    """A network, or a partition of one, that was compiled as one program. Checked when it is made.

    Raises
    ------
    ValueError
        A rule is broken. One line: name, rule and value.
    """

    name: str
    """The network's name."""
    design_digest: str
    model_digest: str
    """design_digest, model_digest: of the design that it runs on, and of the network and its arrays: 64 hex digits
    each."""
    input: Map
    """Map of one image."""
    output_shape: tuple[int, int, int]
    """(height, width, channels) of the device's output."""
    output_kind: str
    """Which values the maps have that leave: a name of `RESULT_KINDS`."""
    classes: tuple[str, ...] = ()
    """Names of the output's channels, or ()."""
    output_maps: int = 1
    """Maps that leave for a frame. Where they are several (golden/layers/outputs.py), the output has their values one
    behind the other, which are no scores of classes."""
    ideal_cycles: int
    """Beats of the busiest NPU in a frame: no frame takes fewer cycles."""
    layers: tuple[tuple[str, int], ...] = ()
    """(name, ideal cycles) of each layer; a copy of a map on another NPU is one, too (hls_gen/design/copy_names.py)."""
    mapping: tuple[int, ...] = ()
    """NPU of each layer; () becomes NPU 0 for all."""
    parameters: Array
    """(n,) uint32, LOAD packets."""
    stream_bits: int
    """Bits of a word of the device's stream."""
    frame: FrameLayout
    """Where the values of an image lie in a frame's payload."""
    results: tuple[ResultMap, ...]
    """Where the output values lie in a frame's results: of each map that leaves, in the order of the outputs."""
    weights: Array = field(default_factory=lambda: np.zeros(0, np.uint32))
    """(m,) uint32, WEIGHTS packets that go with every frame; none where all weights stay on the device."""
    weights_before: int = 0
    """How many words of these go before the frame; the others go after it."""
    host: Host | None = None
    """The host's part of an imported network; None for others."""
    tail: Model | None = None
    """Layers at the network's end that the host computes of the device's output; None where there are none."""

    def __post_init__(self) -> None:
        """Raise ValueError for the first rule that a program breaks, and make an empty mapping NPU 0 for all layers."""
        check_name("program", self.name)
        for key in ("parameters", "weights"):
            array = getattr(self, key)
            self.require(array.dtype == np.uint32, f"{key} must be uint32", array.dtype)
            self.require(array.ndim == 1, f"{key} must have 1 dimensions", array.ndim)
        for digest in ("design_digest", "model_digest"):
            value = getattr(self, digest)
            self.require(
                len(value) == 64 and set(value) <= set("0123456789abcdef"),
                f"{digest} must be 64 lower-case hex digits",
                repr(value),
            )
        self.require(
            self.output_kind in RESULT_KINDS,
            f"output_kind must be one of {', '.join(RESULT_KINDS)}",
            repr(self.output_kind),
        )
        self.require(
            len(self.output_shape) == 3 and min(self.output_shape) >= 1,
            "output_shape must be 3 integers >= 1",
            self.output_shape,
        )
        self.require(self.output_maps >= 1, "output_maps must be >= 1", self.output_maps)
        count = len(self.weights)
        self.require(0 <= self.weights_before <= count, f"weights_before must be 0..{count}", self.weights_before)
        widths = " or ".join(map(str, STREAM_WIDTHS))
        self.require(self.stream_bits in STREAM_WIDTHS, f"stream_bits must be {widths}", self.stream_bits)
        with naming(self.name):
            self.frame.check(self.input)
            for result in self.results:
                result.check(self.output_kind)
        count = prod(self.output_shape)
        values = sum(result.values for result in self.results)
        self.require(values == count, f"result_maps must have {count} values", values)
        self.require(count <= MOST_VALUES, f"output_shape must have at most {MOST_VALUES} values", count)
        for what, words in (("frame", self.payload_words), ("result", self.result_words)):
            self.require(words <= MOST_WORDS, f"a {what} must have at most {MOST_WORDS} words", words)
        several = {result.places.shape[1] for result in self.results}
        self.require(len(several) == 1, "result_maps must have bits alike", sorted(several))
        if not self.mapping:
            object.__setattr__(self, "mapping", (0,) * len(self.layers))
        ok = len(self.mapping) == len(self.layers) and min(self.mapping, default=0) >= 0
        self.require(ok, f"mapping must have an NPU for each of {len(self.layers)} layers", list(self.mapping))
        if self.tail is not None:
            self._check_tail(self.tail.network)
        check_classes(self.name, self.classes, self.network_shape[2])
        check_layer_names(*(copied(layer, n) for (layer, _), n in zip(self.layers, self.mapping)))
        if self.host is not None:
            self.require(
                self.host.digest == self.model_digest,
                f"the host's part must belong to the model {self.model_digest[:12]}",
                self.host.digest[:12],
            )

    def _check_tail(self, tail: Network) -> None:
        """Raise ValueError unless the layers read the device's output, have no weights, and need no endless time or
        memory."""
        for layer in tail.layers:
            if isinstance(layer, Pool):
                TAPS.check(f"{self.name}: {layer.name}", tail.maps[layer.name].positions * layer.window.taps)
        size = tail.input.shape
        kinds = [layer.kind for layer in tail.layers if isinstance(layer, Weighted)]
        self.require(size == self.output_shape, f"the host's layers must read a map of shape {self.output_shape}", size)
        self.require(not kinds, "the host's layers must have no weights", ", ".join(kinds))

    @property
    def network_shape(self) -> tuple[int, int, int]:
        """(height, width, channels) of the network's output, which the host may compute of the device's."""
        return self.tail.network.output.shape if self.tail is not None else self.output_shape

    @property
    def weighted_mapping(self) -> tuple[int, ...]:
        """NPU of each weighted layer, without copies: what compiles the network as this program was."""
        return tuple(n for (name, _), n in zip(self.layers, self.mapping) if not is_copy(name))

    @property
    def turns(self) -> "tuple[Turn[Program], ...]":
        channels = self.network_shape[2]
        return (Turn(self, (MapChannels(INPUT, 0, self.input.channels),), MapChannels(OUTPUT, 0, channels)),)

    @property
    def gives_single_bits(self) -> bool:
        return self.tail is None and self.output_kind == "bits" and self.results[0].places.shape[1] == 1

    @property
    def frame_words(self) -> int:
        """Input words of a frame, of KFP features each."""
        return self.frame.words

    @property
    def payload_words(self) -> int:
        """32-bit words of a frame's payload, the header not counted."""
        return self.frame.lane_words(self.stream_bits).stream_words(self.frame.words)

    @property
    def result_words(self) -> int:
        """32-bit words of a frame's result, padding included."""
        return max(result.end(self.stream_bits) for result in self.results)

    @property
    def frame_source(self) -> Array:
        """(32 m,) int32, where each bit of a frame's payload comes from: number of an image bit, or ZERO or ONE. Made
        of `frame` when it is asked for, and large."""
        return self.frame.bits(self.input, self.stream_bits)

    def pack_images(self, images: Array, out: Array | None = None) -> Array:
        """Make the payloads of frames. Scratch memory doesn't grow with their number.

        Parameters
        ----------
        images
            (n, H, W, C) integers.
        out
            Where to write the payloads; by default a new array.

        Returns
        -------
        ndarray
            (n, payload_words) uint32.

        Raises
        ------
        ValueError
            As ``check_images``.
        """
        self.check_images(images)
        if out is None:
            out = np.empty((len(images), self.payload_words), np.uint32)
        count = max(1, CHUNK_WORDS // self.payload_words)
        for i in range(0, len(images), count):
            out[i : i + count] = self.frame.pack(self.input, images[i : i + count], self.stream_bits)
        return out

    def unpack_results(self, words: Array, out: Array | None = None) -> Array:
        """Read output values from result words.

        Parameters
        ----------
        words
            (n * result_words,) or (n, result_words) uint32.
        out
            (n, H, W, C) integers, where to write the values; by default a new array.

        Returns
        -------
        ndarray
            ``out``, by default int64.

        Raises
        ------
        ValueError
            They are not the words of whole frames, or a value is beyond what ``out`` holds.
        """
        words = np.asarray(words, np.uint32)
        self.require(words.size % self.result_words == 0, f"results must be n * {self.result_words} words", words.size)
        words = np.ascontiguousarray(words).reshape(-1, self.result_words)
        n = len(words)
        if out is None:
            out = np.empty((n, *self.network_shape), np.int64)
        count = max(1, CHUNK_WORDS // self.result_words)
        for i in range(0, n, count):
            part = words[i : i + count]
            maps = [result.unpack(self.output_kind, part, self.stream_bits) for result in self.results]
            values = maps[0] if len(maps) == 1 else np.concatenate([each.reshape(len(part), -1) for each in maps], 1)
            values = values.reshape(len(part), *self.output_shape)
            if self.tail is not None:
                values = self.tail.forward(values.astype(np.int64))
            if values.size and not np.can_cast(values.dtype, out.dtype):
                held = np.iinfo(out.dtype)
                for value in (values.min(), values.max()):
                    self.require(held.min <= value <= held.max, f"results must be {held.min}..{held.max}", value)
            out[i : i + count] = values
        return out

    def to_bytes(self) -> bytes:
        arrays = {"header": np.frombuffer(json.dumps(self._header(), sort_keys=True).encode(), np.uint8)}
        arrays |= {
            "parameters": np.ascontiguousarray(self.parameters),
            "frame_positions": np.ascontiguousarray(self.frame.positions),
            "frame_lanes": np.ascontiguousarray(self.frame.lanes),
            "result_maps": np.array([result.numbers for result in self.results], np.int32),
            "result_places": np.concatenate([result.places for result in self.results]),
        }
        if len(self.weights):
            arrays |= {"weights": np.ascontiguousarray(self.weights), "weights_before": np.array(self.weights_before)}
        if self.host is not None:
            arrays["host"] = np.frombuffer(host_file.to_bytes(self.host), np.uint8)
        if self.tail is not None:
            arrays["tail"] = np.frombuffer(model_file.to_bytes(self.tail), np.uint8)
        return array_bytes({**arrays, "digest": np.frombuffer(bytes.fromhex(array_digest(arrays)), np.uint8)})

    def _header(self) -> dict[str, Any]:
        """The file's header as JSON data; `_read_header` is the inverse."""
        source = self.input
        encoding = {"kind": source.encoding.kind, "bits": source.encoding.bits}
        shape = {"height": source.height, "width": source.width, "channels": source.channels}
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "design_digest": self.design_digest,
            "model_digest": self.model_digest,
            "input": {**shape, "encoding": encoding},
            "stream_bits": self.stream_bits,
            "frame": {key: getattr(self.frame, key) for key in FRAME_NUMBERS},
            "output_shape": list(self.output_shape),
            "output_kind": self.output_kind,
            "classes": list(self.classes),
            **({"output_maps": self.output_maps} if self.output_maps > 1 else {}),
            "ideal_cycles": self.ideal_cycles,
            "layers": [list(layer) for layer in self.layers],
            "mapping": list(self.mapping),
        }

    @classmethod
    def load(cls, path: str | Path) -> "Program":
        """Read a program.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            The file holds no program, or not what was saved. One line that begins with the path.
        """
        archive = read_archive(path)
        with naming(path):
            return cls.of(archive)

    @classmethod
    def of(cls, archive: Archive) -> "Program":
        """The program that the archive holds; ValueError as of `load`, without the path."""
        arrays = arrays_of(archive, ("header", *ARRAYS, "digest"), *TOGETHER)
        given: dict[str, Any] = _read_header(arrays["header"])
        digest = arrays.pop("digest")
        check_digest(digest, array_digest(arrays))
        del arrays["header"]
        if "tail" in arrays:
            given["tail"] = read_tail(arrays.pop("tail"))
        if "host" in arrays:
            shape = given["tail"].network.output.shape if "tail" in given else given["output_shape"]
            given["host"] = read_host(arrays.pop("host"), given["model_digest"], given["input"], shape)
        numbers = given.pop("frame")
        given["frame"] = FrameLayout(
            positions=arrays.pop("frame_positions"), lanes=arrays.pop("frame_lanes"), **numbers
        )
        given["results"] = ResultMap.of(arrays.pop("result_maps"), arrays.pop("result_places"))
        for key, array in arrays.items():
            given[key] = _scalar(key, array) if key == "weights_before" else array
        return cls(**given)


def _scalar(name: str, array: Array) -> int:
    """The one integer of an array without axes."""
    if array.shape != ():
        raise ValueError(f"{name} must be one integer, got an array of shape {array.shape}")
    return int(array)


def _read_header(data: Array) -> dict[str, Any]:
    """Fields of ``Program`` by name, of the header's JSON, (n,) uint8; ``Program`` checks what goes together.

    ValueError if it is no program's header: one line that begins with ``header``.
    """
    header = Reader(parse_json(data.tobytes(), "header"), "header")
    header.format(FORMAT, VERSION)
    return {
        "name": header.text("name"),
        "design_digest": header.digest("design_digest"),
        "model_digest": header.digest("model_digest"),
        "input": _input(header.inner("input")),
        "stream_bits": header.number("stream_bits", 1, LARGEST),
        "frame": {key: header.inner("frame").number(key, 1, LARGEST) for key in FRAME_NUMBERS},
        "output_shape": header.numbers("output_shape", 1, LARGEST),
        "output_kind": header.text("output_kind"),
        "classes": header.texts("classes"),
        "output_maps": header.number("output_maps", 1, LARGEST) if "output_maps" in header.data else 1,
        "ideal_cycles": header.number("ideal_cycles", 0),
        "layers": tuple(_layer(header, entry) for entry in header.entries("layers")),
        "mapping": header.numbers("mapping"),
    }


def _input(reader: Reader) -> Map:
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
