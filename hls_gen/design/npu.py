"""NPU: a folding with capacities. One engine that computes layer after layer of whatever network is loaded."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from bitloom.golden.names import shown

from .capacities import Capacities
from .fields import named
from .folding import SOURCES, Folding
from .lanes import weight_of_lanes
from .memories import Memory, kernel_store, memory_map
from .reader import Reader
from .result_widths import ResultWidths
from .rules import require
from .widths import ADD_FEATURE_BITS, SKIP_BITS, bits_for
from .window_former import check_former, former_row

SETTINGS = ("last_layer", "last_pool_layer", "binariser_last", "last_chunk")
"""Fields of the network's row that the NPU looks at; the loader looks at the others."""


@dataclass(frozen=True, kw_only=True)
class Npu(ResultWidths):
    """One NPU: all of Folding and all of Capacities, and what follows from both.

    Checked when it is made; ValueError ``npu: field, rule, value``.
    """

    def __post_init__(self) -> None:
        Folding.__post_init__(self)
        Capacities.__post_init__(self)
        lanes = f"collect = {self.collect}" if self.collect else f"kfp = {self.kfp}"
        least = self.least_acc_bits
        require(self.acc_bits >= least, f"acc_bits must be >= {least} for {lanes}", self.acc_bits)
        block = self.lanes_per_weight * self.lane_step
        own = self.lanes_per_weight == 1
        require(own or block <= self.kfp, f"lanes_per_weight * lane_step must be <= kfp = {self.kfp}", block)
        binary = self.engine == "binary" and not self.planes
        require(own or binary, "lanes_per_weight must be 1 for engine integer and for planes", self.lanes_per_weight)
        rule = f"kernel_rows must be > tuple_words = {self.tuple_words} for one_memory"
        require(not self.one_memory or self.kernel_rows > self.tuple_words, rule, self.kernel_rows)
        ok = self.skip_bits >= 2 if self.keeps_steps else self.skip_bits == 0
        rule = f"skip_bits must be {f'2..{SKIP_BITS}' if self.keeps_steps else 0}"
        require(ok, f"{rule} for engine {self.engine} with skip_words = {self.skip_words}", self.skip_bits)
        ok = not self.skips_onward or (self.keeps_steps and "ring" in self.outlets)
        require(ok, "skips_onward needs engine binary, a skip store and outlet ring", self.outlets)
        if self.skip_words:
            self._check_addition()
        if self.depthwise:
            least = self.pool_sum_bits
            require(self.acc_bits >= least, f"acc_bits must be >= {least} for depthwise", self.acc_bits)
        check_former(self)

    def _check_addition(self) -> None:
        """Raise ValueError unless the NPU can have a skip store and an addition."""
        words = self.skip_words
        if self.keeps_steps:
            require(not self.joined_words, "joined_words must be 0 for engine binary", self.joined_words)
            return
        rule = f"feature_bits must be <= {ADD_FEATURE_BITS} for skip_words = {words}"
        require(self.feature_bits <= ADD_FEATURE_BITS, rule, self.feature_bits)
        ok = not (self.kfp % self.ol and self.ol % self.kfp)
        require(ok, f"ol must divide kfp = {self.kfp}, or be a multiple of it, for skip_words = {words}", self.ol)

    @property
    def former_lane_bits(self) -> int:
        """Bits of a value in a frame word for the window former: the planes of an integer where they are side by side,
        else a feature."""
        return self.planes or self.feature_bits

    @property
    def former_words(self) -> int:
        """Words of the longest window that the former forms."""
        return -(-self.former_columns * self.former_column // self.plane_lanes)

    @property
    def folding(self) -> Folding:
        """What was chosen of this NPU."""
        return Folding(**{one.name: getattr(self, one.name) for one in fields(Folding)})

    @property
    def sources(self) -> tuple[str, ...]:
        """Where a layer's map may come from, in the order in which a field ``source`` counts: the inlets, and the skip
        store where there is one."""
        return (*self.inlets, "skip") if self.forks_maps else self.inlets

    @property
    def targets(self) -> tuple[str, ...]:
        """Where a layer's map may go, in the order in which a field ``target`` counts: as ``sources``."""
        return (*self.outlets, "skip") if self.forks_maps else self.outlets

    @property
    def source_places(self) -> str:
        """What register STATE says of an inlet, in words: the places of all that some NPU has."""
        known = SOURCES if self.forks_maps else SOURCES[:-1]
        return ", ".join(f"{place} {name}" for place, name in enumerate(known))

    @property
    def source_bits(self) -> int:
        """Width of a source's number, 0 where there is one source."""
        return bits_for(len(self.sources) - 1) if len(self.sources) > 1 else 0

    @property
    def target_bits(self) -> int:
        """Width of a target's number, 0 where there is one target."""
        return bits_for(len(self.targets) - 1) if len(self.targets) > 1 else 0

    @property
    def way_bits(self) -> int:
        """Width of the fields that say where a layer's map goes (memories.way)."""
        return self.target_bits + (2 if self.forks_maps else 0)

    @property
    def claims_one_by_one(self) -> bool:
        """Whether a tap of the array's sequencer claims one tuple at most; with counters, or a table ``aheads``, it may
        claim any number."""
        return not (self.raster or self.aheads)

    @property
    def pool_side_bits(self) -> int:
        """Bits that go with a word of the pool unit: last of its tuple, last of its map, where the map goes."""
        return 2 + self.way_bits

    @property
    def plane_lanes(self) -> int:
        """Channels of an input of integers, or of values of lanes_per_weight bits, in a word; lanes that are left over
        behind the last block of lanes that share weights have none."""
        if self.lanes_per_weight == 1:
            return super().plane_lanes
        return self.kfp // (self.lanes_per_weight * self.lane_step) * self.lane_step

    @property
    def weight_of_lanes(self) -> list[int]:
        """Number of the weight that each lane meets (lanes.weight_of_lanes)."""
        return weight_of_lanes(self.kfp, self.lanes_per_weight, self.lane_step)

    @property
    def row_weights(self) -> int:
        """Weights of a PE in a row of the kernel memory: kfp, or fewer where lanes share them."""
        blocks, rest = divmod(self.kfp, self.lanes_per_weight * self.lane_step)
        return blocks * self.lane_step + min(rest, self.lane_step)

    @property
    def pool_address_bits(self) -> int:
        """Width of a word's address in the pool's tuple memory."""
        return bits_for(self.pool_words - 1)

    @property
    def pool_index_bits(self) -> int:
        """Width of the number of a word in its tuple, in the pool unit."""
        return bits_for(min(self.pool_tuple_words, self.pool_words) - 1)

    @property
    def row_bits(self) -> int:
        """Width of a kernel row's address."""
        return bits_for(self.kernel_rows - 1)

    @property
    def pool_row_bits(self) -> int:
        """Width of the address of a row of the pool unit's weights."""
        return bits_for(self.pool_kernel_rows - 1)

    @property
    def first_kernel_row(self) -> int:
        """First row of weights in the kernel memory: behind the words of features, where these lie in it."""
        return self.tuple_words if self.one_memory else 0

    @property
    def operand_bits(self) -> int:
        """Width of a row of the RAM that holds the kernels: of a row of weights, or of a word of features if these lie
        in it and are wider."""
        return max(self.kernel_store.width, self.word_bits if self.one_memory else 0)

    @property
    def settings(self) -> dict[str, int]:
        """Width of each field of the network's row that the NPU looks at, by name."""
        known = {*SETTINGS, *(name for name, _ in former_row(self))}
        return {name: w for name, w in self.memory("network").widths.items() if name in known}

    @property
    def kernel_store(self) -> Memory:
        """Memory ``kernels`` as it is stored, behind a kernel binariser where there is one."""
        return kernel_store(self)

    def memories(self) -> tuple[Memory, ...]:
        """Every loadable memory, by id."""
        return memory_map(self)

    def memory(self, name: str) -> Memory:
        """Look up a memory.

        Parameters
        ----------
        name
            The memory's name.

        Returns
        -------
        Memory
            The memory of that name.

        Raises
        ------
        KeyError
            There is none; the message lists those that there are.
        """
        return named(self.memories(), name, "memory")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``from_dict`` is its inverse. Fields that are ``written_if_set`` are left out at their
        default: their features are rare."""
        rare = [one for one in fields(self) if one.metadata.get("written_if_set")]
        unset = {one.name for one in rare if getattr(self, one.name) == one.default}
        plain = {key: value for key, value in asdict(self).items() if key not in unset}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Npu":
        """NPU of ``to_dict``'s data.

        Parameters
        ----------
        data
            Fields by name, those that are left out being as by default.

        Returns
        -------
        Npu
            The NPU.

        Raises
        ------
        ValueError
            An NPU has no such field, or a field is out of its range.
        """
        reader = Reader(data, "npu")
        names = {one.name for one in fields(cls)}
        for key in reader.data:
            require(key in names, "fields must be those of an NPU", shown(key))
        known = dict(reader.data)
        known |= {key: reader.texts(key) for key in ("inlets", "outlets", "lut_products") if key in known}
        return cls(**known)
