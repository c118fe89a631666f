"""A candidate of the search: NPUs, mapping and dataflows for a network, and the design that it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bitloom.golden.names import printable
from bitloom.golden.network import Model
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.compiler.choices import CompileChoices, Dataflow
from bitloom.hls_gen.compiler.sizing import SizedDesign, Sizing, sized_design
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.design import STREAM_WIDTHS, Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reader import Reader

from .engines import Engines
from .stores_in_use import ROOM_FOR_ALL, has_stores, run_lowered, with_stores

FORMAT = "bitloom-foldings"
VERSION = 1
CAPACITIES = ("tuple_words", "pool_words")
"""Memory sizes of an NPU that a candidate may ask for; all others follow from the network."""
DEFAULTS = flat.DEFAULTS | dict.fromkeys(CAPACITIES, 2)
"""Values of an NPU where a file says nothing. Of CAPACITIES they are the least; ``size_memories`` finds those that are
needed."""

NPU_KEYS = (*flat.CHOSEN, *CAPACITIES)
"""Keys of an NPU in a file."""
SCHEMA = Path(__file__).parent / "foldings.schema.json"
"""The format of such files as a JSON schema, for editors and other tools; a test holds it to the reader."""
KEYS = (
    "format",
    "version",
    "network",
    "also",
    "stream_bits",
    "map_order",
    "dataflow",
    "mapping",
    "npus",
    "chunk",
    "shortcuts",
    "copy_depthwise",
    "partitions",
)
"""Keys of a file."""


@dataclass(frozen=True)
class Candidate:
    """Foldings for a network, of which ``size_memories`` makes a design."""

    network: str
    """The network's name."""
    npus: tuple[Npu, ...]
    """The chain of NPUs. Of their memory sizes only CAPACITIES count, as what they must hold at the least."""
    mapping: tuple[int, ...]
    """NPU of each weighted layer of the network in the order of computing, counted from 0; depthwise convolutions that
    a pool unit computes are none. With further networks it is that of the first one, and the compiler maps all."""
    stream_bits: int = 64
    """Width of both streams, 32 or 64."""
    map_order: str = "pull"
    """"pull" or "raster"."""
    dataflow: Dataflow = field(default_factory=dict)
    """Dataflow by layer name; output_stationary for those not named. A file may also have one for all layers."""
    chunk: str = ""
    """Words of a buffer between neighbours; see `CompileChoices`."""
    shortcuts: str = "first"
    copy_depthwise: bool = False
    """shortcuts, copy_depthwise: as in `CompileChoices`; a search leaves both as they are."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """As in `CompileChoices`."""
    also: tuple[str, ...] = ()
    """Names of further networks that its NPUs have room for."""

    @property
    def choices(self) -> CompileChoices:
        """How networks are compiled for the candidate's design; the compiler chooses the mapping where there is one
        NPU, or each of several networks has its own."""
        return CompileChoices(
            map_order=self.map_order,
            dataflow=self.dataflow,
            mapping=self.mapping if len(self.npus) > 1 and not self.also and not self.partitions else None,
            chunk=self.chunk,
            shortcuts=self.shortcuts,
            copy_depthwise=self.copy_depthwise,
            partitions=self.partitions,
        )

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that tell candidates for a network apart, for sets and dictionaries."""
        dataflow = self.dataflow if isinstance(self.dataflow, str) else tuple(sorted(self.dataflow.items()))
        cuts = tuple(self.partitions.items())
        return self.npus, self.mapping, self.map_order, dataflow, self.chunk, self.shortcuts, self.copy_depthwise, cuts

    @property
    def engines(self) -> Engines:
        """The engine of each layer."""
        return Engines(tuple(self.npus[n].engine for n in self.mapping), any(npu.depthwise for npu in self.npus))

    @property
    def lanes(self) -> int:
        """Lanes of all NPUs."""
        return sum(npu.lanes for npu in self.npus)

    @property
    def closed(self) -> bool:
        """Whether the NPUs are a ring: the last one leads to NPU 0."""
        return "ring" in self.npus[0].ports.inlets

    @property
    def topology(self) -> str:
        """How the NPUs are connected, in a few words, and the programs of a network in partitions."""
        count = len(self.npus)
        if count == 1:
            return "1 NPU" + (f", {sum(self.partitions.values())} programs" if self.partitions else "")
        if self.closed:
            return f"ring of {count}"
        return f"{'cascade' if any('loop' in npu.ports.outlets for npu in self.npus) else 'pipeline'} of {count}"

    def indices_on(self, n: int) -> tuple[int, ...]:
        """Numbers of the layers that NPU ``n`` computes."""
        return tuple(i for i, npu in enumerate(self.mapping) if npu == n)

    def with_npu(self, n: int, npu: Npu, dataflow: Mapping[str, str]) -> "Candidate":
        """The candidate with another NPU in place ``n``, and other dataflows."""
        return replace(self, npus=(*self.npus[:n], npu, *self.npus[n + 1 :]), dataflow=dataflow)

    @property
    def stream_weights(self) -> bool:
        """Whether weights come over the stream in each frame."""
        return any(npu.loader.stream_weights for npu in self.npus)

    def design(self, model: Model, name: str = "explored", also: Sequence[Model] = ()) -> Design:
        """The design for ``model``, called ``name``, with room for the models ``also``; skip stores and spill store
        have as many words as are ever in use.

        Raises
        ------
        ValueError
            If the NPUs can't compute the network.
        """
        return self.sized((model, *also), name).design

    def sized(self, models: Sequence[Model], name: str = "explored") -> SizedDesign:
        """The result of ``design``, with the lowered networks; errors as there."""
        sized = self.roomy(models, name)
        design, networks = sized
        if not has_stores(design):
            return sized
        flows = [flow for each in networks for flow in run_lowered(each, self.choices, design)]
        return sized._replace(design=with_stores(design, flows))

    def roomy(self, models: Sequence[Model], name: str = "explored") -> SizedDesign:
        """The design for networks with skip stores and a spill store that never get full; errors as of ``design``."""
        sizing = Sizing(stream_weights=self.stream_weights, skip_words=ROOM_FOR_ALL, spill_words=ROOM_FOR_ALL)
        sized = sized_design(name, models, self.npus, self.choices, self.stream_bits, sizing)
        npus = tuple(
            npu.changed(**{key: max(npu.value(key), given.value(key)) for key in CAPACITIES if npu.has(key)})
            for npu, given in zip(sized.design.npus, self.npus)
        )
        return sized._replace(design=replace(sized.design, npus=npus))

    def to_dict(self) -> dict[str, Any]:
        """JSON data, of which ``from_dict`` makes the candidate again.

        It holds of an NPU only what differs from DEFAULTS.
        """
        npus = [
            {key: n.value(key) for key in NPU_KEYS if n.value(key) != DEFAULTS[key] and n.has(key)} for n in self.npus
        ]
        also = {"also": list(self.also)} if self.also else {}
        return {
            "format": FORMAT,
            "version": VERSION,
            "network": self.network,
            **also,
            "stream_bits": self.stream_bits,
            "map_order": self.map_order,
            "dataflow": self.dataflow if isinstance(self.dataflow, str) else dict(self.dataflow),
            "mapping": list(self.mapping),
            "npus": npus,
            **({"chunk": self.chunk} if self.chunk else {}),
            **({"shortcuts": self.shortcuts} if self.shortcuts != "first" else {}),
            **({"copy_depthwise": True} if self.copy_depthwise else {}),
            **({"partitions": dict(self.partitions)} if self.partitions else {}),
        }

    @classmethod
    def load(cls, path: Path, model: Model, also: Sequence[Model] = ()) -> "Candidate":
        """Read a candidate from a file that ``bitloom explore --save`` wrote.

        Parameters
        ----------
        path
            The file.
        model, also
            The network that it shall be for, and further ones on the same design.

        Raises
        ------
        ValueError
            If the file holds none, or one for another network than ``model``, or for one that isn't given.
        """
        data = read_json(path, "foldings")
        with naming(path):
            candidate = cls.from_dict(data)
        if candidate.network != model.network.name:
            raise ValueError(f"{path}: foldings must be for {model.network.name}, got {printable(candidate.network)}")
        given = [other.network.name for other in also]
        missing = [name for name in candidate.also if name not in given]
        if missing:
            raise ValueError(f"{path}: these foldings are also for {', '.join(missing)}, which must be given, got none")
        return candidate

    @classmethod
    def from_dict(cls, data: Any) -> "Candidate":
        """The candidate of ``to_dict``'s data.

        Raises
        ------
        ValueError
            If the data are of another format, or something in them is missing or wrong.
        """
        file = Reader(data, "foldings")
        file.format(FORMAT, VERSION)
        file.only(KEYS)
        least = Npu.of(acc_bits=32, **{key: DEFAULTS[key] for key in CAPACITIES})
        npus = []
        for n, entry in enumerate(file.entries("npus", 1)):
            with naming(f"foldings: npus[{n}]"):
                npu = Reader(entry, "npu")
                npu.only(NPU_KEYS)
                npus.append(Npu.from_dict(npu.data, least))
        choices = CompileChoices.from_dict(file.data)
        stream_bits = file.number("stream_bits")
        file.require(stream_bits in STREAM_WIDTHS, "stream_bits must be 32 or 64", stream_bits)
        return cls(
            network=file.text("network"),
            npus=tuple(npus),
            mapping=file.numbers("mapping", 0, len(npus) - 1),
            stream_bits=stream_bits,
            map_order=choices.map_order,
            dataflow=choices.dataflow,
            chunk=choices.chunk,
            shortcuts=choices.shortcuts,
            copy_depthwise=choices.copy_depthwise,
            partitions=choices.partitions,
            also=file.texts("also") if "also" in file.data else (),
        )
