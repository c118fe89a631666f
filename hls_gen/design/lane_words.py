"""Words of lanes as they lie in stream words, and lanes as numbers: the way there and back.

    lanes [d c b a], a lane_bits wide --word_bits--> word --gearbox.py--> stream words, 32-bit words in pairs

Whole arrays of words are taken at a time, so that a host needs few operations of numpy for each lane of a word, and
none for each bit of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .gearbox import Gear, gear

MOST_LANE_BITS = 32
MOST_LANES = 1 << 16
"""MOST_LANE_BITS, MOST_LANES: bits of a lane, and lanes of a word, at most."""


def unsigned_dtype(bits: int) -> "np.dtype[Any]":
    """The smallest little-endian dtype of unsigned numbers of so many bits."""
    return np.dtype(f"<u{next(count for count in (1, 2, 4, 8) if 8 * count >= bits)}")


@dataclass(frozen=True, kw_only=True)
class LaneWords:
    """Words of a stream, each of some lanes."""

    lanes: int
    """Lanes of a word, 1 to MOST_LANES, the first one in its lowest bits."""
    lane_bits: int
    """Bits of a lane, 1 to MOST_LANE_BITS."""
    word_bits: int
    """Bits of a word. Those above its lanes are 0."""
    stream_bits: int
    """Bits of a stream word, 32 or 64."""

    @property
    def gear(self) -> Gear:
        """How words become stream words."""
        return gear(self.word_bits, self.stream_bits)

    def stream_words(self, count: int) -> int:
        """32-bit words that ``count`` words take, from a new stream word on."""
        return self.gear.words(count) * (self.stream_bits // 32)

    @property
    def _in_bytes(self) -> bool:
        """Whether lanes are numbers of memory, and words whole bytes."""
        return self.lane_bits in (8, 16, 32) and self.word_bits % 8 == 0

    def pack(self, lanes: Array) -> Array:
        """Put lanes into the stream.

        Parameters
        ----------
        lanes
            (n, words, lanes) unsigned numbers below 2^lane_bits.

        Returns
        -------
        ndarray
            (n, ``stream_words(words)``) uint32.
        """
        n, count, each = lanes.shape
        together, pieces = self.gear
        units = -(-count // together)  # of words that become stream words together
        if count < units * together:
            lanes = np.concatenate([lanes, np.zeros((n, units * together - count, each), lanes.dtype)], axis=1)
        lanes = lanes.reshape(n * units, together, each)
        if self.lane_bits == 1:
            stream = np.packbits(self._spread(lanes, 1), axis=1, bitorder="little")
        elif self._in_bytes:
            octets = np.ascontiguousarray(lanes, unsigned_dtype(self.lane_bits)).view(np.uint8)
            stream = self._spread(octets, 8)
        else:
            stream = np.zeros((n * units, pieces), f"<u{self.stream_bits // 8}")
            for word, lane, place, begin in self._places():
                number = lanes[:, word, lane].astype(stream.dtype)
                stream[:, place] |= number << stream.dtype.type(begin)
                if begin + self.lane_bits > self.stream_bits:
                    stream[:, place + 1] |= number >> stream.dtype.type(self.stream_bits - begin)
        return np.ascontiguousarray(stream).reshape(n, -1).view("<u4")

    def _spread(self, words: Array, bits: int) -> Array:
        """(units, numbers of ``bits`` bits in their stream words) of (units, together, numbers)."""
        units, together, count = words.shape
        whole = self.word_bits // bits
        size = self.gear.pieces * self.stream_bits // bits
        if count == whole and together * whole == size:
            return words.reshape(units, size)
        spread = np.zeros((units, size), np.uint8)
        for word in range(together):
            spread[:, word * whole : word * whole + count] = words[:, word]
        return spread

    def _places(self) -> list[tuple[int, int, int, int]]:
        """(word, lane, stream word, bit in it) of each lane of the words that become stream words together."""
        return [
            (word, lane, *divmod(word * self.word_bits + lane * self.lane_bits, self.stream_bits))
            for word in range(self.gear.together)
            for lane in range(self.lanes)
        ]

    def unpack(self, stream: Array, count: int) -> Array:
        """Take lanes out of the stream: the inverse of `pack`.

        Parameters
        ----------
        stream
            (n, ``stream_words(count)``) uint32.
        count
            Words.

        Returns
        -------
        ndarray
            (n, count, lanes) of `unsigned_dtype`.
        """
        n = len(stream)
        together, pieces = self.gear
        units = self.gear.words(count) // pieces
        stream = np.ascontiguousarray(stream, "<u4").view(f"<u{self.stream_bits // 8}").reshape(n * units, pieces)
        dtype = unsigned_dtype(self.lane_bits)
        if self.lane_bits == 1:
            lanes = self._gathered(np.unpackbits(stream.view(np.uint8), axis=1, bitorder="little"), 1, self.lanes)
        elif self._in_bytes:
            octets = self._gathered(stream.view(np.uint8), 8, self.lanes * dtype.itemsize)
            lanes = np.ascontiguousarray(octets).view(dtype)
        else:
            lanes = np.empty((n * units, together, self.lanes), dtype)
            for word, lane, place, begin in self._places():
                number = stream[:, place] >> stream.dtype.type(begin)
                if begin + self.lane_bits > self.stream_bits:
                    number |= stream[:, place + 1] << stream.dtype.type(self.stream_bits - begin)
                lanes[:, word, lane] = number & stream.dtype.type((1 << self.lane_bits) - 1)
        return lanes.reshape(n, units * together, self.lanes)[:, :count]

    def _gathered(self, numbers: Array, bits: int, count: int) -> Array:
        """(units, together, count) of the numbers of ``bits`` bits in stream words: the inverse of `_spread`."""
        whole = self.word_bits // bits
        together = self.gear.together
        return numbers[:, : together * whole].reshape(len(numbers), together, whole)[:, :, :count]
