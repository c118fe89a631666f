"""How a network is compiled for a design: the choices that change its program, but not the hardware.

A chunk is how much of a map one of the two buffers between neighbours takes before both change over (spec D4):

    tuples:4     four tuples, fewer where a buffer holds fewer
    rows         as many full rows as a buffer holds: the step follows from the buffers
    rows:2       two full rows, all columns and channels; the buffers follow from the step
    columns:2    two full columns, all rows and channels

Rows are whole where a map is made row after row (map order "raster"), columns where it is made column after column
("columns"). The last chunk of a map is what is left. A map of one tuple goes word by word, so that its reader begins
while it is still being made.

A dataflow is what stays in the PEs, sums or words (spec B9, A10).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bitloom.golden.integers import make_fields_plain
from bitloom.golden.names import shown
from bitloom.hls_gen.design.npu import Npu

from .lowered_layers import LoweredLayer
from .schedule import ORDERS, StageTables
from .segments import SHORTCUTS

CHUNK_ORDERS = {"tuples": None, "rows": "raster", "columns": "columns"}
"""Kinds of chunks, each with the map order that it needs; None: any will do."""


@dataclass(frozen=True)
class Chunk:
    """The words of a map that one buffer of a ping-pong pair takes."""

    kind: str = "tuples"
    """One of CHUNK_ORDERS."""
    count: int | None = 1
    """How many; None: as many as a buffer holds."""

    @classmethod
    def of(cls, text: str) -> "Chunk":
        """A chunk by its text; "" is one tuple.

        Raises
        ------
        ValueError
            There is no such chunk.
        """
        if not text:
            return cls()
        match = re.fullmatch(rf"({'|'.join(CHUNK_ORDERS)})(:([1-9][0-9]{{0,6}}))?", text, re.ASCII)
        if not match:
            kinds = ", ".join(CHUNK_ORDERS)
            raise ValueError(f"chunk must be one of {kinds}, perhaps with :N, N from 1 on, got {text!r}")
        return cls(match[1], int(match[3]) if match[3] else None)

    @property
    def map_order(self) -> str | None:
        """The map order that it needs; None: any will do."""
        return CHUNK_ORDERS[self.kind]

    @property
    def sizes_buffers(self) -> bool:
        """Whether buffers are as large as the chunk, and not the chunk as large as they allow."""
        return self.kind != "tuples" and self.count is not None

    def words(self, read: StageTables, tuple_words: int, buffer_words: int) -> int:
        """Words of a chunk of one map.

        Parameters
        ----------
        read
            The schedule of the layer that reads the map.
        tuple_words
            Words of a tuple.
        buffer_words
            Words of a buffer.

        Returns
        -------
        int
            At most ``buffer_words``, unless buffers follow from the chunk.

        Raises
        ------
        ValueError
            A buffer doesn't hold one row, or one column.
        """
        stage = read.stage
        order = read.input_order
        if stage.height * stage.width == 1:
            return 1
        if self.kind == "tuples":
            fit = buffer_words // tuple_words
            return min(self.count or fit, fit) * tuple_words if fit else buffer_words
        across = order % stage.width if self.kind == "rows" else order // stage.width
        line = len(np.unique(across)) * tuple_words
        whole = len(order) * tuple_words
        if self.count is not None:
            return min(self.count * line, whole)
        if line > buffer_words:
            raise ValueError(
                f"{stage.name}: a chunk of whole {self.kind} needs buffers of {line} words at least, got {buffer_words}"
            )
        return min(buffer_words // line * line, whole)


DATAFLOWS = ("output_stationary", "input_stationary", "input_stationary:N (N >= 2)", "auto")
Dataflow = str | Mapping[str, str]
"""Dataflow: one for all layers, or by layer name ("output_stationary" for those not named).

"output_stationary" (spec B9): sums stay in the PEs, and a window is passed once for each group of kgp kernels.
"input_stationary" (A10): a word stays until all groups have used it, so that nothing is read again; needs as many
accumulators as groups. "input_stationary:4": a window is passed once for as many groups as divide all of them, two to
four; results of a pass leave during the next one. "auto": "input_stationary" where there are several groups and
accumulators for two windows.
"""
_DATAFLOW = re.compile(r"output_stationary|auto|input_stationary(?::([2-9]|[1-9][0-9]{1,6}))?", re.ASCII)


def is_dataflow(value: object) -> bool:
    """Whether that is a dataflow, of all layers or of one."""
    return isinstance(value, str) and _DATAFLOW.fullmatch(value) is not None


def inner_groups(layer: LoweredLayer, folding: Npu, dataflow: Dataflow) -> int:
    """Kernel groups that use a word in turn: 1 where the layer's dataflow is output_stationary, else all of them, or
    the part that it names."""
    if not isinstance(dataflow, str):
        dataflow = dataflow.get(layer.name, "output_stationary")
    named = _DATAFLOW.fullmatch(dataflow)
    assert named  # as CompileChoices takes no other
    groups = folding.array.groups(layer.out_channels)
    accumulators = folding.array.accumulators
    if dataflow == "output_stationary" or (dataflow == "auto" and 2 * groups > accumulators):
        return 1
    inner = max(n for n in range(1, min(groups, int(named[1] or groups)) + 1) if groups % n == 0)
    if inner == 1 < groups:
        rule = f"dataflow {dataflow} needs a divisor of its {groups} kernel groups from 2 to {named[1]}"
        raise ValueError(f"{layer.name}: {rule}, got none")
    if inner > accumulators:
        raise ValueError(f"{layer.name}: dataflow {dataflow} needs accumulators >= {inner}, the NPU has {accumulators}")
    return inner


def named_dataflow(inner: int, passes: int) -> str:
    """The dataflow in which so many kernel groups use a word in turn, and a window is passed so often."""
    if inner == 1:
        return "output_stationary"
    return "input_stationary" if passes == 1 else f"input_stationary:{inner}"


WRITTEN_IF_SET = ("chunk", "shortcuts", "copy_depthwise", "partitions")
"""Fields of `CompileChoices` that files have only where they are not the default."""


@dataclass(frozen=True, kw_only=True)
class CompileChoices:
    """A person's choices when networks are compiled for a design.

    Raises
    ------
    ValueError
        A value is none of those that the field takes.
    """

    map_order: str = "auto"
    """Order in which the tuples of each map are computed (spec B7, hls_gen/compiler/schedule): "pull", "raster",
    "columns", or "auto", which takes the one of the first two whose tuple memories and tables have fewer bits as they
    are built."""
    dataflow: Dataflow = "output_stationary"
    """Dataflow of all layers, or by layer name; see ``bitloom.hls_gen.compiler.choices.Dataflow``."""
    mapping: Sequence[int] | None = None
    """NPU of each weighted layer, counted from 0, by whose engine the layer is computed; None:
    ``bitloom.hls_gen.compiler.mapping.assign`` chooses."""
    chunk: str = ""
    """Words of a map that one of the two buffers between neighbours takes before they change over (spec D4):
    "tuples:4", "rows", "rows:2", "columns:2" (hls_gen/compiler/choices.py); "": a tuple. Rows and columns imply their
    map order."""
    shortcuts: str = "first"
    """When the shorter of two ways from a map to an addition is computed: "first", or "last", before the layer that
    adds. Last is faster where the way reads few of the tuples that come, and takes more words of the map store."""
    copy_depthwise: bool = False
    """Whether a depthwise convolution that has no layer to follow, as a network's first one, follows a copy of its
    input, so that a pool unit can compute it. Faster where that takes its taps in fewer cycles than the array."""
    repeat_input: bool = False
    """Whether the input is sent once for each layer that reads it, and not copied on the device. Partitions have it so;
    there must be one NPU without a window former."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Layers in front of which the network is cut into partitions (hls_gen/compiler/partitions.py), each with the
    number of programs by which the channels of its partition are computed; none: one program computes all."""

    @property
    def of_partition(self) -> "CompileChoices":
        """The choices of each partition; these ones where there are none."""
        return replace(self, partitions={}, repeat_input=True) if self.partitions else self

    def __post_init__(self) -> None:
        if isinstance(self.mapping, np.ndarray):
            object.__setattr__(self, "mapping", self.mapping.tolist())
        make_fields_plain(self)
        if self.map_order not in (*ORDERS, "auto"):
            raise ValueError(f"map_order must be one of {', '.join(ORDERS)}, auto, got {self.map_order!r}")
        for value in self.dataflow.values() if isinstance(self.dataflow, Mapping) else [self.dataflow]:
            if not is_dataflow(value):
                raise ValueError(f"dataflow must be one of {', '.join(DATAFLOWS)}, got {value!r}")
        if not isinstance(self.chunk, str):
            raise ValueError(f"chunk must be a text, got {self.chunk!r}")
        Chunk.of(self.chunk)
        if self.shortcuts not in SHORTCUTS:
            raise ValueError(f"shortcuts must be one of {', '.join(SHORTCUTS)}, got {self.shortcuts!r}")
        for name in ("copy_depthwise", "repeat_input"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {getattr(self, name)!r}")
        pairs = self.partitions.items() if isinstance(self.partitions, Mapping) else [(None, None)]
        if not all(isinstance(name, str) and type(count) is int and count >= 1 for name, count in pairs):
            raise ValueError(f"partitions must be numbers of programs >= 1 by layer, got {shown(self.partitions)}")
        if self.partitions and self.mapping is not None:
            raise ValueError(f"mapping must be left out of a network in partitions, got {list(self.mapping)}")

    def to_dict(self) -> dict[str, Any]:
        """JSON data, of which ``from_dict`` makes the choices again, without the mapping: files hold that elsewhere."""
        default = CompileChoices()
        of_few = [name for name in WRITTEN_IF_SET if getattr(self, name) != getattr(default, name)]
        values = {name: getattr(self, name) for name in ("map_order", "dataflow", *of_few)}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "CompileChoices":
        """The choices of ``to_dict``'s data, which may hold other keys too.

        Raises
        ------
        ValueError
            A value is missing or unknown; chunk, shortcuts, copy_depthwise and partitions may be missing.
        """
        given: dict[str, Any] = {name: data.get(name) for name in ("map_order", "dataflow")}
        given |= {name: data[name] for name in WRITTEN_IF_SET if name in data}
        return cls(**given)
