"""How the values of an image lie in the words of a frame, and those of a map in the words of a result: by rule.

    image --positions--> groups of positions --lanes--> lanes of words --lane_words.py--> stream words of a frame

All groups of a frame are laid out alike, and so are the positions of a map that leaves. So a few numbers for one group,
or one position, say where each bit of a map is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.golden.encoding import MOST_BITS, Array, Encoding
from bitloom.golden.layer import Map

from .gearbox import regroup
from .lane_words import MOST_LANE_BITS, MOST_LANES, LaneWords, unsigned_dtype
from .lanes import UNUSED

ZERO, ONE = -1, -2
"""Values of ``FrameLayout.lanes`` that are no bit of an image: the number 0, the number 1."""
RESULT_NUMBERS = ("first", "positions", "words", "lanes", "lane_bits")
"""Fields of a `ResultMap` that stand in its row of a program's ``result_maps``, behind its number of channels."""


def codes(encoding: Encoding, values: Array, bits: int) -> Array:
    """How values are stored, with the highest of their bits repeated where they are signed or thermometers.

    Parameters
    ----------
    encoding
        Of the values.
    values
        Legal values.
    bits
        Bits that are wanted of each.

    Returns
    -------
    ndarray
        Unsigned numbers, of ``bits`` bits or more.
    """
    dtype = unsigned_dtype(max(bits, encoding.bits))
    if encoding.kind != "bipolar":
        return values.astype(dtype, copy=False)
    if encoding.bits == 1:
        return np.negative((values > 0).view(np.uint8)).astype(np.int8).astype(dtype, copy=False)
    ones = (values.astype(np.int64) + encoding.bits) >> 1
    return np.where(ones == encoding.bits, -1, (1 << ones) - 1).astype(dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrameLayout:
    """How a frame's words are made of an image."""

    channels: int
    """Values of a position: the image's channels, or all of its values where they are read as one position."""
    positions: Array
    """(groups, positions of a group) int32: number of each position of the image, row after row, or UNUSED: all of its
    values are stored as 0."""
    lanes: Array
    """(words of a group, lanes) int32: the bit of a group's positions with which each lane begins, or ZERO, ONE. Bits
    are counted value by value (position, channel), each value its encoding's stored bits, low bit first. Bits of a lane
    above its value's are 0 of an unsigned value, else copies of the value's highest bit."""
    lane_bits: int
    """Bits of a lane."""
    word_bits: int
    """Bits of a word. Those above its lanes are 0."""

    @property
    def words(self) -> int:
        """Words of a frame."""
        return len(self.positions) * len(self.lanes)

    def lane_words(self, stream_bits: int) -> LaneWords:
        """The words in a stream of this width."""
        lanes = self.lanes.shape[1]
        return LaneWords(lanes=lanes, lane_bits=self.lane_bits, word_bits=self.word_bits, stream_bits=stream_bits)

    def check(self, source: Map) -> None:
        """ValueError unless this is a layout of frames of ``source``: rule and value."""
        for name in ("positions", "lanes"):
            array = getattr(self, name)
            _require(array.dtype == np.int32, f"frame_{name} must be int32", array.dtype)
            _require(array.ndim == 2 and array.size > 0, f"frame_{name} must have 2 axes and a value", array.shape)
        _require(1 <= self.lane_bits <= MOST_LANE_BITS, f"lane_bits must be 1..{MOST_LANE_BITS}", self.lane_bits)
        width = self.lanes.shape[1]
        _require(width <= MOST_LANES, f"frame_lanes must have at most {MOST_LANES} lanes a word", width)
        least = width * self.lane_bits
        _require(least <= self.word_bits, f"word_bits must be >= {least}", self.word_bits)
        ok = self.channels >= 1 and source.size % self.channels == 0
        _require(ok, f"channels of a frame must be a divisor of {source.size}, the image's values", self.channels)
        _in_range("frame_positions", self.positions, UNUSED, source.size // self.channels - 1)
        values = self.positions.shape[1] * self.channels
        rule = f"frame_lanes must have a lane for each of {values} values of a group"
        _require(values <= self.lanes.size, rule, self.lanes.size)
        _in_range("frame_lanes", self.lanes, ONE, values * source.encoding.bits - 1)

    def pack(self, source: Map, images: Array, stream_bits: int) -> Array:
        """Make the words of frames.

        Parameters
        ----------
        source
            The input map.
        images
            (n, H, W, C) legal values.
        stream_bits
            Width of the stream.

        Returns
        -------
        ndarray
            (n, 32-bit words of a frame) uint32.
        """
        numbers = self._lane_numbers(source, self._group_values(source, images))
        wide = 8 * numbers.dtype.itemsize > self.lane_bits
        if wide and not (source.encoding.kind == "unsigned" and source.encoding.bits <= self.lane_bits):
            numbers = numbers & numbers.dtype.type((1 << self.lane_bits) - 1)
        return self.lane_words(stream_bits).pack(numbers.reshape(len(images), self.words, -1))

    def _group_values(self, source: Map, images: Array) -> Array:
        """(n, groups, values of a group): values as they are stored, of the positions as they are sent."""
        groups, together = self.positions.shape
        stored = codes(source.encoding, images, self.lane_bits).reshape(len(images), -1, self.channels)
        order = self.positions.ravel()
        if not np.array_equal(order, np.arange(stored.shape[1])):
            stored = np.take(stored, order, axis=1, mode="clip")
            stored[:, order == UNUSED] = 0
        return stored.reshape(len(images), groups, together * self.channels)

    def _lane_numbers(self, source: Map, stored: Array) -> Array:
        """(n, groups, lanes of a group): number of each lane, perhaps with bits of the value above the lane's."""
        lanes = self.lanes.ravel()
        values = stored.shape[2]
        if np.array_equal(lanes[:values], np.arange(values) * source.encoding.bits) and (lanes[values:] == ZERO).all():
            if len(lanes) == values:
                return stored
            numbers = np.zeros((*stored.shape[:2], len(lanes)), stored.dtype)
            numbers[..., :values] = stored
            return numbers
        used = lanes >= 0
        value, shift = np.divmod(np.where(used, lanes, 0), source.encoding.bits)
        numbers = np.take(stored, value, axis=2)
        if shift.any():
            signed = numbers if source.encoding.kind == "unsigned" else _signed(numbers)
            signed >>= shift.astype(signed.dtype)  # in place: the highest bit goes on
        numbers[..., ~used] = lanes[~used] == ONE
        return numbers

    def bits(self, source: Map, stream_bits: int) -> Array:
        """Number of the image bit in each bit of a frame's stream words, or ZERO, ONE: (32 m,) int32."""
        stored = source.encoding.bits
        of_position = self.channels * stored
        lane = self.lanes[..., None]
        above = ZERO if source.encoding.kind == "unsigned" else lane - lane % stored + stored - 1
        bit = np.arange(self.lane_bits)
        bits = np.where(lane % stored + bit < stored, lane + bit, above)
        bits = np.where(lane < 0, np.where((lane == ONE) & (bit == 0), ONE, ZERO), bits)
        bits = bits.reshape(len(self.lanes), -1)
        at = self.positions.astype(np.int64)[:, np.maximum(bits, 0) // of_position]  # (groups, words of a group, bits)
        bits = np.where(bits < 0, bits, np.where(at == UNUSED, ZERO, at * of_position + bits % of_position))
        words = np.full((self.words, self.word_bits), ZERO, np.int64)
        words[:, : bits.shape[2]] = bits.reshape(self.words, -1)
        return np.asarray(regroup(words, stream_bits), np.int32).ravel()


@dataclass(frozen=True, kw_only=True)
class ResultKind:
    """Which values a map has that leaves."""

    lane_bits: int | None
    """Bits of a lane; None: those of a feature."""
    places: int = 1
    """Lanes of a value at most."""
    alone: bool = False
    """Whether a word has one lane."""


RESULT_KINDS = {
    "raw": ResultKind(lane_bits=32, alone=True),
    "bits": ResultKind(lane_bits=1, places=MOST_BITS),
    "signed": ResultKind(lane_bits=None),
}
"""By name: "raw", accumulators; "bits", thermometer bits; "signed", bits in two's complement, low bit first."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultMap:
    """How the words of a map that leaves hold its values."""

    first: int
    """The 32-bit word of a frame's results with which it begins."""
    positions: int
    """Positions of the map, which leave row after row."""
    words: int
    """Words of a position."""
    lanes: int
    """Lanes of a word."""
    lane_bits: int
    """Bits of a lane."""
    places: Array
    """(channels, k) int32: the lane of a position's words in which each channel is; of thermometer bits, its k lanes of
    a bit."""

    def lane_words(self, stream_bits: int) -> LaneWords:
        """The words in a stream of this width."""
        bits = self.lanes * self.lane_bits
        return LaneWords(lanes=self.lanes, lane_bits=self.lane_bits, word_bits=bits, stream_bits=stream_bits)

    def end(self, stream_bits: int) -> int:
        """The 32-bit word behind the last one."""
        return self.first + self.lane_words(stream_bits).stream_words(self.positions * self.words)

    @property
    def values(self) -> int:
        """Values of the map."""
        return self.positions * len(self.places)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its row of ``result_maps``: channels, and RESULT_NUMBERS."""
        return (len(self.places), *(getattr(self, name) for name in RESULT_NUMBERS))

    @classmethod
    def of(cls, numbers: Array, places: Array) -> "tuple[ResultMap, ...]":
        """The maps whose rows are ``numbers``, with the places of all of them one behind the other; ValueError if these
        aren't such arrays: rule and value."""
        columns = 1 + len(RESULT_NUMBERS)
        ok = numbers.dtype == np.int32 and numbers.shape == (len(numbers), columns) and len(numbers) > 0
        _require(ok, f"result_maps must be (maps, {columns}) int32", f"{numbers.shape} {numbers.dtype}")
        channels = numbers[:, 0].astype(np.int64)
        _require(channels.min() >= 1, "result_maps: channels must be >= 1", channels.min())
        _require(channels.sum() == len(places), f"result_places must have {channels.sum()} rows", len(places))
        parts = np.split(places, np.cumsum(channels)[:-1])
        rows = (dict(zip(RESULT_NUMBERS, row[1:].tolist())) for row in numbers)
        return tuple(cls(places=part, **row) for row, part in zip(rows, parts))

    def check(self, kind: str) -> None:
        """ValueError unless this is a map of such values, as of ``Program.output_kind``: rule and value."""
        _require(self.places.dtype == np.int32, "result_places must be int32", self.places.dtype)
        axes = self.places.ndim == 2 and self.places.size > 0
        _require(axes, "result_places must have 2 axes and a value", self.places.shape)
        _require(self.first >= 0, "result_maps: the first word must be >= 0", self.first)
        for name in ("positions", "words", "lanes"):
            _require(getattr(self, name) >= 1, f"result_maps: {name} must be >= 1", getattr(self, name))
        _require(self.lanes <= MOST_LANES, f"result_maps: lanes must be <= {MOST_LANES}", self.lanes)
        bits = RESULT_KINDS[kind].lane_bits
        low, high = (bits, bits) if bits else (1, MOST_LANE_BITS)
        rule = f"result_maps: lanes of {kind} values must have {low}..{high} bits"
        _require(low <= self.lane_bits <= high, rule, self.lane_bits)
        several = self.places.shape[1]
        most = RESULT_KINDS[kind].places
        rule = f"result_places of {kind} values must have k = " + ("1" if most == 1 else f"1..{most}")
        _require(several <= most, rule, several)
        lanes = self.words * self.lanes
        _require(self.places.size <= lanes, f"result_places must be at most {lanes} lanes", self.places.size)
        _in_range("result_places", self.places, 0, lanes - 1)

    def unpack(self, kind: str, results: Array, stream_bits: int) -> Array:
        """Values in the result words of frames.

        Parameters
        ----------
        kind
            ``Program.output_kind``.
        results
            (n, 32-bit words of a frame's results) uint32.
        stream_bits
            Width of the stream.

        Returns
        -------
        ndarray
            (n, positions, channels) signed numbers.
        """
        words = results[:, self.first : self.end(stream_bits)]
        lanes = self.lane_words(stream_bits).unpack(words, self.positions * self.words)
        lanes = lanes.reshape(len(results), self.positions, self.words * self.lanes)
        channels, several = self.places.shape
        flat = self.places.ravel()
        in_order = np.array_equal(flat, np.arange(len(flat)))
        chosen = lanes[..., : len(flat)] if in_order else np.take(lanes, flat, axis=2)
        if kind == "bits":
            ones = chosen.reshape(*chosen.shape[:2], channels, several).sum(axis=3, dtype=np.int16)
            return np.asarray(2 * ones - several)
        signed = _signed(np.ascontiguousarray(chosen))
        above = 8 * signed.dtype.itemsize - self.lane_bits  # bits of the container above a lane's
        return (signed << above) >> above if above else signed


def _signed(numbers: Array) -> Array:
    """Unsigned numbers as signed ones of the same bits; a view."""
    return numbers.view(numbers.dtype.str.replace("u", "i"))


def _require(ok: bool, rule: str, value: Any) -> None:
    """ValueError with the rule and the value unless ``ok``."""
    if not ok:
        raise ValueError(f"{rule}, got {value}")


def _in_range(name: str, array: Array, low: int, high: int) -> None:
    """ValueError unless all numbers of an array are ``low`` to ``high``."""
    ok = array.min() >= low and array.max() <= high
    _require(ok, f"{name} must be {low}..{high}", f"{array.min()}..{array.max()}")
