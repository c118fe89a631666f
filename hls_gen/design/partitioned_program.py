"""A network in partitions, compiled for a design: several programs for a network that is larger than its device.

    image -> program of partition 0 -> map in the host's memory -> program of partition 1 -> ... -> output

A partition may be several programs, each for some channels of the partition's map. Format: docs/reference/device.md,
"Partitioned program". The file is one like a program's; among its arrays are the files of the programs.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.host import file as host_file
from bitloom.golden.host.host import Host
from bitloom.golden.layer import Map
from bitloom.golden.names import check_classes, check_layer_names, check_name
from bitloom.golden.reading.archive import Archive, read_archive
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import parse_json

from .array_file import array_bytes, array_digest, check_digest, digest_of, names_of
from .compiled_network import CompiledNetwork, MapChannels, Turn
from .program import LARGEST, Program
from .program_host import read_host
from .reader import Reader

FORMAT = "bitloom-partitions"
VERSION = 1
MOST_PROGRAMS = 1024
"""Programs of a network at most: as many as a network may have layers."""
Shape = tuple[int, int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedProgram(CompiledNetwork[Program]):
    """A network in partitions. Checked when it is made.

    Raises
    ------
    ValueError
        A rule is broken. One line: name, rule and value.
    """

    name: str
    """The network's name."""
    model_digest: str
    """Of the whole network and its arrays."""
    programs_in_turn: tuple[Turn[Program], ...]
    """Of `turns`. The first one reads the network's input alone, or channels of it. Programs of one map give its
    channels one behind the other, before another one reads them."""
    classes: tuple[str, ...] = ()
    """Names of the output's channels, or ()."""
    host: Host | None = None
    """The host's part of an imported network; None for others."""
    design_digest: str = field(init=False)
    input: Map = field(init=False)
    output_maps: int = field(init=False)
    ideal_cycles: int = field(init=False)
    layers: tuple[tuple[str, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Raise ValueError for the first rule that the programs break together."""
        check_name("program", self.name)
        self.require(1 <= len(self.turns) <= MOST_PROGRAMS, f"programs must be 1..{MOST_PROGRAMS}", len(self.turns))
        first, last = self.programs[0], self.programs[-1]
        ends = [read.end for turn in self.turns for read in turn.reads if read.map == INPUT]
        for program in self.programs:
            same = program.design_digest == first.design_digest
            self.require(same, f"programs must be for design {first.design_digest[:16]}", program.design_digest[:16])
            self.require(program.host is None, "programs of partitions must have no host's part", program.name)
            single = program.output_maps == 1 or program is last
            self.require(single, "one map must leave a partition", program.output_maps)
        for name, value in {
            "design_digest": first.design_digest,
            "input": replace(first.input, channels=max(ends, default=first.input.channels)),
            "output_maps": last.output_maps,
            "ideal_cycles": sum(program.ideal_cycles for program in self.programs),
            "layers": tuple(layer for program in self.programs for layer in program.layers),
        }.items():
            object.__setattr__(self, name, value)
        shape = self.network_shape
        check_classes(self.name, self.classes, shape[2])
        if self.host is not None:
            given = self.host.digest
            self.require(given == self.model_digest, f"the host's part must be of {self.model_digest[:12]}", given[:12])

    @property
    def turns(self) -> tuple[Turn[Program], ...]:
        return self.programs_in_turn

    @property
    def gives_single_bits(self) -> bool:
        return self.programs[-1].gives_single_bits

    @property
    def network_shape(self) -> Shape:
        return self._shapes()[self.turns[-1].gives.map]

    def _shapes(self) -> dict[str, Shape]:
        """Shape of each map; ValueError unless each is whole before it is read, and as its readers want it."""
        shapes = {INPUT: (*self.input.shape[:2], 0)}  # of channels those that are read: none may be left out
        read_by = dict[str, int]()  # map -> number of the last program that reads it
        for number, turn in enumerate(self.turns):
            program, gives = turn.program, turn.gives
            read = [map_channels.end - map_channels.begin for map_channels in turn.reads]
            for map_channels in turn.reads:
                self.require(
                    read_by.get(map_channels.map) != number, f"{program.name} must read a map once", map_channels.map
                )
                read_by[map_channels.map] = number
                height, width, channels = shapes.get(map_channels.map, (0, 0, 0))
                if map_channels.map == INPUT and map_channels.begin <= channels:
                    channels = max(channels, map_channels.end)
                    shapes[INPUT] = height, width, channels
                ok = (height, width) == program.input.shape[:2]
                self.require(
                    ok, f"{program.name} must read maps of {program.input.shape[:2]} positions", map_channels.map
                )
                self.require(
                    0 <= map_channels.begin < map_channels.end <= channels,
                    f"{map_channels.map} has {channels} channels",
                    map_channels,
                )
            self.require(sum(read) == program.input.channels, f"{program.name} must read its channels", sum(read))
            ok = gives.map not in read_by
            self.require(ok, f"{program.name} must give channels of a map that nobody has read", gives.map)
            height, width, channels = program.network_shape
            before = shapes.get(gives.map, (height, width, 0))
            ok = before == (height, width, gives.begin) and gives.end - gives.begin == channels
            self.require(ok, f"{program.name} must give the next {channels} channels of a map of {before}", gives)
            shapes[gives.map] = height, width, gives.end
        return shapes

    @property
    def weighted_mapping(self) -> None:
        return None

    def to_bytes(self) -> bytes:
        header = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "model_digest": self.model_digest,
            "classes": list(self.classes),
            "turns": [
                {"reads": [_entry(map_channels) for map_channels in turn.reads], "gives": _entry(turn.gives)}
                for turn in self.turns
            ],
        }
        arrays = {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)}
        arrays |= {_key(n): np.frombuffer(program.to_bytes(), np.uint8) for n, program in enumerate(self.programs)}
        if self.host is not None:
            arrays["host"] = np.frombuffer(host_file.to_bytes(self.host), np.uint8)
        digest = np.frombuffer(bytes.fromhex(array_digest(arrays)), np.uint8)
        return array_bytes({**arrays, "digest": digest})


def _key(number: int) -> str:
    """Name of the array that holds the file of a program."""
    return f"program_{number}"


def _entry(map_channels: MapChannels) -> dict[str, Any]:
    """JSON data of channels of a map; `_map_channels` is the inverse."""
    return {"map": map_channels.map, "begin": map_channels.begin, "end": map_channels.end}


def _map_channels(reader: Reader) -> MapChannels:
    """Channels of a map, of JSON data."""
    name = reader.text("map")
    if name != INPUT:
        check_layer_names(name)
    return MapChannels(name, reader.number("begin", 0, LARGEST), reader.number("end", 1, LARGEST))


def read_program(path: str | Path) -> CompiledNetwork[Program]:
    """Read a compiled network: a program, or one of a network in partitions.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file holds neither, or not what was saved. One line that begins with the path.
    """
    archive = read_archive(path)
    with naming(path):
        return _partitioned(archive) if _key(0) in archive.arrays else Program.of(archive)


def _partitioned(archive: Archive) -> PartitionedProgram:
    """The network in partitions that an archive holds."""
    header = Reader(parse_json(archive.array("header").tobytes(), "header"), "header")
    header.format(FORMAT, VERSION)
    entries = [Reader(entry, "header: turns") for entry in header.entries("turns")]
    header.require(1 <= len(entries) <= MOST_PROGRAMS, f"turns must be 1..{MOST_PROGRAMS}", len(entries))
    keys = [_key(n) for n in range(len(entries))]
    names = names_of(archive, ("header", *keys, "digest"), ("host",))
    digest = archive.array("digest")
    check_digest(digest, digest_of((name, archive.array(name)) for name in names if name != "digest"))
    turns = []
    for key, entry in zip(keys, entries):
        reads = tuple(_map_channels(Reader(fields, "header: reads")) for fields in entry.entries("reads"))
        with naming(key):
            program = Program.of(Archive(archive.array(key).tobytes()))
        turns.append(Turn(program, reads, _map_channels(entry.inner("gives"))))
    given: dict[str, Any] = {
        "name": header.text("name"),
        "model_digest": header.digest("model_digest"),
        "programs_in_turn": tuple(turns),
    }
    classes = header.texts("classes")
    if "host" not in names:
        return PartitionedProgram(**given, classes=classes)
    alone = PartitionedProgram(**given)  # checked: it has shapes
    host = read_host(archive.array("host"), alone.model_digest, alone.input, alone.network_shape)
    return PartitionedProgram(**given, classes=classes, host=host)
