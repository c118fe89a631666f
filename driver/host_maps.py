"""Maps in the host's memory, between the programs that take turns on a device."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map
from bitloom.hls_gen.design.compiled_network import CompiledNetwork, MapChannels, Turn
from bitloom.hls_gen.design.program import Program

ROUND_BYTES = 1 << 26
"""Bytes of a map that wait in the host's memory between two programs, for all frames of a round."""


def held_dtype(source: Map) -> "np.dtype[Any]":
    """The smallest integers of whole bytes that have all values of a map."""
    low, high = source.encoding.low, source.encoding.high
    return np.min_scalar_type(high if low == 0 else -high - 1)


def round_frames(network: CompiledNetwork[Program]) -> int:
    """Frames that go through the programs of a network in partitions together by default: as many as ROUND_BYTES hold
    of the largest map that a program reads."""
    inputs = [program.input for program in network.programs]
    return max(1, ROUND_BYTES // max(source.size * held_dtype(source).itemsize for source in inputs))


class HostMaps:
    """The maps of some frames, each held from the first program that makes channels of it to the last one that reads
    it, in integers as small as its readers take them.

    Parameters
    ----------
    turns
        The programs, in their order.
    images
        (N, H, W, C), what the first one reads.
    outputs
        (N, H', W', C') int64, where the last map is written.
    """

    def __init__(self, turns: Sequence[Turn[Program]], images: Array, outputs: Array) -> None:
        self._maps = {INPUT: images, turns[-1].gives.map: outputs}
        self._channels = {turn.gives.map: turn.gives.end for turn in turns}
        self._last_reader = {read.map: turn for turn in turns for read in turn.reads}
        self._dtypes = {read.map: held_dtype(turn.program.input) for turn in turns for read in turn.reads}

    def images(self, turn: Turn[Program]) -> Array:
        """The images of a program: the maps that it reads, side by side, (N, H, W, C).

        Raises
        ------
        ValueError
            The device gave a value that the map between two programs can't have.
        """
        arrays = [_channels(self._maps[read.map], read) for read in turn.reads]
        for read, values in zip(turn.reads, arrays, strict=True):
            if read.map != INPUT:  # the driver has checked the images
                turn.program.input.encoding.check(f"{turn.program.name}: map {read.map}", values)
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=3)

    def outputs(self, turn: Turn[Program]) -> Array:
        """Where a program's outputs are written: (N, H', W', C')."""
        name = turn.gives.map
        if name not in self._maps:
            height, width, _ = turn.program.network_shape
            shape = (len(self._maps[INPUT]), height, width, self._channels[name])
            self._maps[name] = np.empty(shape, self._dtypes.get(name, np.int64))
        return _channels(self._maps[name], turn.gives)

    def done(self, turn: Turn[Program]) -> None:
        """Let go of the maps that no program behind this one reads."""
        for read in turn.reads:
            if read.map != INPUT and self._last_reader[read.map] is turn:
                self._maps.pop(read.map, None)


def _channels(values: Array, map_channels: MapChannels) -> Array:
    """Channels of a map; a view."""
    return values[:, :, :, map_channels.begin : map_channels.end]
