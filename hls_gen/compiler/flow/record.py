"""A network of processes written down in numbers, of which native/flow.cpp makes the same network.

    make(kind, *values) --> the component in Python, and a line of the record: kind, values

In the record components and stamps stand by their numbers, a list with its length in front of it, a tuple without, and
None as -1. Of other values ``_items`` says what of them a component needs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from typing import Any, ParamSpec, TypeVar

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.headers import HEADER_BITS

from .addition import AddedSteps, AdditionUnit, CollectedSteps, KeptSteps
from .gearbox import Gearbox, Gears, LineGearbox
from .kahn import Stamps
from .layer import FlowLayer, Reading
from .line_former import LineFormer
from .loader import LONG_AGO, TO_MEMORY, WeightLoader
from .pool_unit import FromPool, PassBy, PoolIssuer, PoolResults, outlet
from .ports import FrameSource, MapResults, RawResults
from .results import ResultStages, ResultsUnit
from .sequencer import Issuer, writer
from .skid import Skid, SkidSource, StreamRegister
from .stores import Fork, JoinedSource, SkipFifo, SkipSide, SkipSource
from .streams import Fifo, PingPong, Router, TupleMemory
from .window_former import WindowFormer

P = ParamSpec("P")
T = TypeVar("T")
ComponentType = Callable[..., Any]

KINDS: Sequence[ComponentType] = (
    AddedSteps,
    AdditionUnit,
    CollectedSteps,
    Fifo,
    Fork,
    FrameSource,
    FromPool,
    Gearbox,
    LineGearbox,
    Gears,
    Issuer.process,
    JoinedSource,
    KeptSteps,
    LineFormer,
    MapResults,
    outlet,
    PingPong,
    PassBy,
    PoolIssuer.process,
    PoolResults.process,
    RawResults,
    ResultStages,
    ResultsUnit.process,
    Router,
    Skid,
    SkidSource,
    SkipFifo,
    SkipSource,
    StreamRegister,
    TupleMemory,
    WeightLoader.process,
    WindowFormer,
    writer,
)
"""Kinds of components, in the order of ``Kind`` in native/flow.cpp."""
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def numbers_of_timing() -> dict[str, int]:
    """Numbers that components take from elsewhere, by the fields of ``Timing`` in native/streams.h, in their order."""
    return {
        "give_back": timing.GIVE_BACK,
        "first_step": timing.FIRST_STEP,
        "credits": timing.CREDITS,
        "lut_ram_words": timing.LUT_RAM_WORDS,
        "skip_word": timing.SKIP_WORD,
        "map_held": timing.MAP_HELD,
        "frames_in_flight": timing.FRAMES_IN_FLIGHT,
        "flag_place": timing.FLAG_PLACE,
        "judging": timing.JUDGING,
        "header_bits": HEADER_BITS,
        "to_memory": TO_MEMORY,
        "long_ago": LONG_AGO,
    }


class Record:
    """The components and stamps of which a network of the flow model consists, as numbers.

    Attributes
    ----------
    stamps
        All stamps, by their numbers.
    """

    def __init__(self) -> None:
        self.stamps: list[Stamps] = []
        self._number_of_stamps: dict[int, int] = {}
        self._components: list[object] = []
        self._number_of_component: dict[int, int] = {}
        self._lines: list[Ints] = []

    def make(self, kind: Callable[P, T], *values: P.args, **none: P.kwargs) -> T:
        """Make a component, one of KINDS, of its values."""
        assert not none, "values of a record have no names"
        component = kind(*values, **none)
        self._lines.append(np.array([_NUMBERS[kind]], np.int64))
        self._lines += map(self._line, values)
        self._number_of_component[id(component)] = len(self._components)
        self._components.append(component)
        return component

    def number(self, item: object) -> int:
        """Number of a component or of stamps."""
        if not isinstance(item, Stamps):
            return self._number_of_component[id(item)]
        if id(item) not in self._number_of_stamps:
            self._number_of_stamps[id(item)] = len(self.stamps)
            self.stamps.append(item)
        return self._number_of_stamps[id(item)]

    @property
    def count(self) -> int:
        """Components that were made."""
        return len(self._components)

    def numbers(self, processes: Iterable[tuple[object, Sequence[Stamps]]]) -> Ints:
        """The record: components, and then those that are processes, with the stamps that they write."""
        running = self._line([(process, list(writes)) for process, writes in processes])
        head = [*numbers_of_timing().values(), len(self.stamps), len(self._components)]
        return np.concatenate([np.array(head, np.int64), *self._lines, running])

    def _line(self, value: Any) -> Ints:
        """A value in numbers."""
        if value is None:
            return np.array([-1], np.int64)
        if isinstance(value, Stamps) or id(value) in self._number_of_component:
            return np.array([self.number(value)], np.int64)
        if isinstance(value, int | np.integer):
            return np.array([value], np.int64)
        if isinstance(value, np.ndarray):
            return np.concatenate([[value.size], value.astype(np.int64)])
        length = [np.array([len(value)], np.int64)] if isinstance(value, list) else []
        return np.concatenate([*length, *map(self._line, _items(value))] or [np.zeros(0, np.int64)])


@singledispatch
def _items(value: Any) -> Iterable[Any]:
    """The numbers of a value in the record: those of each of its items."""
    assert isinstance(value, list | tuple), f"no record has a {type(value).__name__}"
    return value


@_items.register
def _(value: Reading) -> Iterable[Any]:
    arrays = value.taps, value.claiming, value.claims
    held = value.hold_tuples * value.words
    return value.words, value.read_words, held, value.has_skips, value.ends_old, *arrays


@_items.register
def _(value: FlowLayer) -> Iterable[Any]:
    steps = value.steps, value.last_steps
    return value.groups, value.inner, *steps, value.beats, value.raw, value.streamed, value.reading


@_items.register
def _(value: FormedLines) -> Iterable[Any]:
    return value.words, value.times, value.inside(), value.hits()


@_items.register
def _(value: FormedWindows) -> Iterable[Any]:
    return value.words, value.word_positions, value.ahead, value.inside(), value.hits()


@_items.register
def _(value: SkipSide) -> Iterable[Any]:
    return value.puts, value.takes, value.seen


@_items.register
def _(value: Issuer) -> Iterable[Any]:
    npu = value.flow_npu.npu
    sizes = timing.fetch_cycles(npu), npu.array.accumulators, value.flow_npu.latencies.array
    return *sizes, value.written, value.given, value.arrived, value.credit, value.there, value.done


@_items.register
def _(value: PoolIssuer) -> Iterable[Any]:
    sizes = value.flow_npu.latencies.pool, timing.pool_fifo(value.flow_npu.npu).room
    return *sizes, value.written, value.given, value.emitted, value.taken


@_items.register
def _(value: PoolResults) -> Iterable[Any]:
    return value.latency, value.word_steps, value.emitted, value.taken, value.stages


@_items.register
def _(value: ResultsUnit) -> Iterable[Any]:
    return value.several, value.arrived, value.credit, value.feature_stages, value.raw_stages


@_items.register
def _(value: WeightLoader) -> Iterable[Any]:
    each = zip(value.packets, value.npus)
    packets = [(packet.ahead, packet.words, value.there[npu], value.done[npu]) for packet, npu in each]
    return packets, value.before, value.stream_bits, value.entered, value.released
