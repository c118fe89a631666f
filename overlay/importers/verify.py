"""Each rewriting is computed again and compared with the file's nodes; the first that differs is named.

1. *Operators*: every node that became operations is run by ONNX's own reference (QONNX's quantisers by their
   definition) on the tensors of random and extreme images; its operations must make the same of the same inputs.
2. *Model*: the operations between two quantisers are run in float64 on the integers that golden has there; golden's
   next integers must be the levels that come out. An addition or a product of two maps is also proved for every pair of
   values when it is made (pair_fit.py).

A value that lies on a boundary to within the rounding of floating point may fall to either side; such values are
counted as ties. The model itself is exact (`bitloom.overlay.importers.boundaries`); the count says how often floating
point would decide at random.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT, final
from bitloom.golden.host.links import back_through

from .constants import can_fold, fold
from .errors import Unsupported, node_line, printable
from .imported import Imported
from .operations import LEFT, Closing, Concatenation, Elementwise, Layout, Levels, Operation, Pointwise, computed
from .references import reference
from .rows import row_of
from .sections import MapReading, PassSection
from .source import TFLITE, Shape, SourceNode
from .tensors import Tensors

NEAR = 1e-6
"""Largest distance from a boundary at which a value of float32 is a tie, relative to the largest value."""
EXACT_NEAR = 1e-11
"""The same for float64."""
FAR = 2.0**20
"""Largest value that counts for the rounding of others, relative to the quantiser's largest boundary. Larger ones, as
an exponential function makes them, are no terms of the sums that made the others."""
LARGEST = float(np.finfo(np.float64).max)
"""Largest value that counts where all boundaries are 0."""
MOST_AT_ONCE = 1 << 21
"""Values of the largest map, of all images that are computed at once, unless one image has more."""
MOST_STEPS = 16
"""Steps of a quantiser at most between the bounds of a value, all of which a function behind it is tried with."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One rewriting that was verified."""

    name: str
    """The node, or the map."""
    against: str
    """The definition, or the operations, with which it was compared, in words."""
    values: int
    """How many values were compared."""
    ties: int
    """How many of them lay on a boundary, or on a sum whose level is said to be off (`Built.wrong`)."""


def verify(
    imported: Imported, images: int = 8, seed: int = 0, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Checked]:
    """Verify every rewriting.

    Parameters
    ----------
    imported : Imported
    images : int
        Random images; four extreme ones are added.
    seed : int
    progress : callable
        ``progress(done, total)`` is called after each rewriting.

    Raises
    ------
    ValueError
        That names the first rewriting that isn't right: a mistake of the importer, or of the file's operators.
    """
    numbers = range(images + 4)
    few = [*numbers[:images][:2], *numbers[images:]]
    nodes = {operation.name for operation in imported.operations.operations if operation.op not in LEFT}
    checked_maps = {reading.map for section in imported.graph.sections for reading in section.reads} - {0}
    total = len(nodes) + len(checked_maps) + len(imported.graph.outputs)
    known = Tensors.of(imported.source)
    operators = (_operators(imported, known, part) for part in _parts(imported, few, images, seed))
    maps = (_maps(imported, part) for part in _parts(imported, numbers, images, seed))
    out: dict[tuple[str, str], Checked] = {}
    for checked in chain.from_iterable(chain(operators, maps)):
        key = (checked.name, checked.against)
        same = out.get((checked.name, checked.against))
        if same is not None:
            checked = replace(checked, values=checked.values + same.values, ties=checked.ties + same.ties)
        out[key] = checked
        progress(len(out), total)
    return list(out.values())


def _parts(imported: Imported, numbers: Sequence[int], images: int, seed: int) -> Iterator[Array]:
    """Images of `sample_inputs` in parts that are computed at once, so that large maps take the memory of one image."""
    largest = max(prod(shape) for shape in imported.operations.shapes.values())
    count = max(1, MOST_AT_ONCE // largest)
    for first in range(0, len(numbers), count):
        yield np.stack([_sample(imported, number, images, seed) for number in numbers[first : first + count]])


def sample_inputs(imported: Imported, images: int, seed: int) -> Array:
    """Integers of the input map: (images + 4, rows, columns, channels), the last four extreme: all lowest, all highest,
    and two chequered ones."""
    return np.stack([_sample(imported, number, images, seed) for number in range(images + 4)])


def _sample(imported: Imported, number: int, images: int, seed: int) -> Array:
    """One image of `sample_inputs`: (rows, columns, channels)."""
    held = imported.choice.held[0]
    size = imported.graph.size
    most = imported.graph.source.levels
    if number < images:
        level: Array = np.random.default_rng((seed, number)).integers(0, most + 1, size)
    elif number < images + 2:
        level = np.full(size, most * (number - images))
    else:
        row, column, channel = np.ogrid[tuple(map(slice, size))]
        level = (row + column + channel + number) % 2 * most
    sample: Array = held.zero + held.stride * _that_occur(level, imported)
    if any(kind == "clip" for kind, *_ in imported.host.front):  # no number has a level beyond its ends
        real = real_inputs(imported, sample[None]).astype(imported.source.source.dtype)
        (sample,) = imported.host.to_input(real, size)
    return sample


def _that_occur(level: Array, imported: Imported) -> Array:
    """Levels of the input map, (rows, columns, channels), where no number has one the next higher one that some have: a
    second, finer quantiser leaves some levels out."""
    boundaries = imported.graph.source.boundaries
    if boundaries is None:
        return level
    out = np.empty_like(level)
    for channel in range(level.shape[-1]):
        limits = row_of(boundaries.in_floats.limits, channel)
        reached = np.append(0, np.searchsorted(limits, limits, side="right"))
        out[..., channel] = reached[level[..., channel]]
    return out


def real_inputs(imported: Imported, inputs: Array) -> Array:
    """The file's input for integers of the input map: (N, *shape) float64.

    Where the host quantises, real numbers are found that are quantised to these integers.
    """
    held = imported.choice.held[0]
    source = imported.graph.source
    level = (inputs - held.zero) // held.stride
    if source.boundaries is None:
        x = float(source.base) + float(source.step) * level
    else:
        limits = source.boundaries.in_floats.limits
        room = limits[:, -1:] - limits[:, :1] + 1
        ends = np.concatenate([limits[:, :1] - room, limits, limits[:, -1:] + room], axis=1)
        middle = (ends[:, 1:] + ends[:, :-1]) / 2
        x = np.stack([row_of(middle, c)[level[..., c]] for c in range(level.shape[-1])], axis=-1)
        x = back_through(imported.host.front, x)
    flat = x.reshape(len(x), -1)[:, imported.host.order]
    return flat.reshape(len(x), *imported.host.shape)


def _operators(imported: Imported, known: Tensors, inputs: Array) -> Iterator[Checked]:
    """Every node against its operations; constants that are computed become ``known``."""
    source = imported.source
    by_node: dict[str, list[Operation]] = {}
    for operation in imported.operations.operations:
        by_node.setdefault(operation.name, []).append(operation)
    tensors = [{source.source.name: x[None]} for x in real_inputs(imported, inputs)]
    for values in tensors:
        values[source.source.name] = values[source.source.name].astype(source.source.dtype)
    for node in source.nodes:
        if node.outputs[0] in known.values:
            continue
        if can_fold(node, known):
            fold(node, known)
            continue
        for values in tensors:
            values[node.outputs[0]] = _reference(node, ChainMap(values, known.values), source.opset)
        if node.op == "Shape":
            known.values[node.outputs[0]] = tensors[0][node.outputs[0]]
            continue
        if node.op not in LEFT:
            yield _node_checked(node, by_node[node.name], tensors, imported.operations.shapes)


def _reference(node: SourceNode, values: Mapping[str, Array], opset: int) -> Array:
    """The result of a node by its definition."""
    try:
        return reference(node, [values.get(name) if name else None for name in node.inputs], opset)
    except Unsupported as e:
        raise ValueError(node_line(node.name, node.op, e)) from None


def _node_checked(
    node: SourceNode, operations: list[Operation], tensors: list[dict[str, Array]], shapes: Mapping[str, Shape]
) -> Checked:
    reals = any(tensors[0][name].dtype.kind == "f" for operation in operations[:1] for name in operation.reads)
    read = {name for operation in operations for name in operation.reads} - {each.makes for each in operations}
    near = NEAR if reals or node.domain != TFLITE else 0.0  # TFLite's integers are on no boundary
    count = ties = 0
    for values in tensors:
        sources = {name: _Span.of(values[name].astype(np.float64).reshape(shapes[name])) for name in read}
        got = final(span for _, span in computed(operations, sources, lambda each, spans: _result(each, spans, near)))
        wanted = values[node.outputs[0]].astype(np.float64).reshape(got.x.shape)
        quantises = any(operation.unit for operation in operations)
        room = 1e-5 * (1 + np.abs(wanted)) if quantises else 1e-4 * max(1.0, float(np.abs(wanted).max(initial=0)))
        wrong = np.abs(got.x - wanted) > room
        tied = wrong & (got.low - room <= wanted) & (wanted <= got.high + room)
        _refuse(wrong & ~tied, node.name, "the operator's own definition", got.x, wanted)
        count = count + got.x.size
        ties = ties + int(tied.sum())
    return Checked(name=node.name, against=f"{node.op} as it is defined", values=count, ties=ties)


@dataclass(frozen=True, eq=False)
class _Span:
    """A tensor, (N, ...) float64, with lower and upper bounds for the rounding of floating point."""

    x: Array
    low: Array
    high: Array
    values: tuple[Array, ...] = ()
    """All that it may be, where that is few tensors: values between the bounds that no quantiser makes are not among
    them."""

    @classmethod
    def of(cls, x: Array) -> "_Span":
        """A tensor whose values are exact."""
        return cls(x, x, x)

    @property
    def known(self) -> bool:
        """Whether the values are exact."""
        return self.low is self.x and self.high is self.x

    def off(self, levels: int, unit: float) -> "_Span":
        """The tensor with bounds that are wider by some of a quantiser's levels; ``unit`` 0: none made it."""
        if not levels * unit:
            return self
        low, high = self.low - levels * unit, self.high + levels * unit
        return _Span(self.x, low, high, _steps(low, high, unit))


def _steps(low: Array, high: Array, unit: float) -> tuple[Array, ...]:
    """Tensors of the values that a quantiser may make between two bounds, one for each step; none if they are many."""
    count = round(float((high - low).max(initial=0)) / unit)
    return tuple(np.minimum(low + number * unit, high) for number in range(count + 1)) if count <= MOST_STEPS else ()


def _result(operation: Operation, spans: Sequence[_Span], near: float) -> _Span:
    """The result of an operation, with its bounds."""
    if isinstance(operation, Levels):
        (span,) = spans
        end = float(np.abs(operation.boundaries.in_floats.limits).max(initial=0))
        sizes = np.abs(span.x)
        largest = max(end, float(sizes[sizes <= (FAR * end or LARGEST)].max(initial=0)))
        little = near * max(largest, 1e-30)
        ends = operation.run(span.low - little), operation.run(span.high + little)
        return _Span(operation.run(span.x), *ends, _steps(*ends, operation.unit))
    x = operation.run(*(span.x for span in spans))
    if all(span.known for span in spans):
        return _Span.of(x)
    if isinstance(operation, Closing) and not operation.monotone:
        (span,) = spans
        return _Span(x, _closing(operation, span.high, span.low), _closing(operation, span.low, span.high))
    if isinstance(operation, Elementwise | Layout) and spans[0].values:
        values = tuple(operation.run(values) for values in spans[0].values)
        return _Span(x, np.minimum.reduce(values), np.maximum.reduce(values), values)
    if not operation.monotone:
        rule = "what it reads must be exact, as its results may rise and fall with it, got values with rounding"
        raise ValueError(f"{printable(operation.name)}: {rule}")
    # Each value rises or falls with each tensor's, so its ends are at ends of these; where a value is made of one of
    # each tensor, each of these may be at either end.
    tensors_at_ends: Iterable[Sequence[Array]] = ([span.low for span in spans], [span.high for span in spans])
    if isinstance(operation, Pointwise):
        tensors_at_ends = product(*((span.low, span.high) for span in spans))
    results = [operation.run(*tensors) for tensors in tensors_at_ends]
    return _Span(x, np.minimum.reduce(results), np.maximum.reduce(results))


def _closing(operation: Closing, others: Array, x: Array) -> Array:
    """Softmax or LogSoftmax of each value of x where all values beside that value are ``others``."""
    results = operation.run(others)
    with np.errstate(divide="ignore"):  # a share of 0 has no logarithm, and nothing is left beside a share of 1
        share = results if operation.op == "LogSoftmax" else np.log(results)
        beside = np.log1p(-np.exp(share)) + others - x
    moved: Array = share - np.logaddexp(share, beside)
    return moved if operation.op == "LogSoftmax" else np.exp(moved)


def _maps(imported: Imported, inputs: Array) -> Iterator[Checked]:
    """Golden's maps against the operations between them."""
    for each in _golden_maps(imported, inputs):
        each.check()
        ties = int(each.differs.sum())
        yield Checked(name=each.name, against=each.against, values=each.values.size, ties=ties)


def images_off(imported: Imported, inputs: Array) -> Array:
    """Images, (N,) booleans, of which golden has a map that is not what the operations make of the map before: where
    the import says that levels are off, or a value lies on a boundary.

    Parameters
    ----------
    imported : Imported
    inputs : ndarray
        (N, rows, columns, channels) integers of the input map.

    Raises
    ------
    ValueError
        That names the first map that is off by more than the import says.
    """
    off = np.zeros(len(inputs), bool)
    for each in _golden_maps(imported, inputs):
        each.check()
        off |= each.differs.reshape(len(inputs), -1).any(axis=1)
    return off


@dataclass(frozen=True, eq=False)
class _GoldenMap:
    """A map of golden's, and the values that operations compute for it from golden's map before."""

    name: str
    span: _Span
    values: Array
    against: str = "operations, from golden's map before"

    @property
    def room(self) -> float:
        """How far two numbers may be apart that are the same but for rounding."""
        return 1e-9 * max(1.0, float(np.abs(self.span.x).max(initial=0)))

    @property
    def differs(self) -> Array:
        """Which values are others."""
        return np.asarray(~(np.abs(self.values - self.span.x) <= self.room))

    def check(self) -> None:
        """ValueError unless all values lie between the bounds."""
        wrong = (self.values < self.span.low - self.room) | (self.values > self.span.high + self.room)
        _refuse(wrong, self.name, "the operations that it was made of", self.values, self.span.x)


@dataclass(frozen=True, eq=False)
class _Tensor:
    """A tensor between two of golden's maps, or of such a map."""

    span: _Span
    """Results of the operations, from golden's maps before."""
    held: Array | None
    """Real numbers that golden's integers stand for, where these are known."""

    @property
    def read(self) -> _Span:
        """The values that the operations behind the map read."""
        return self.span if self.held is None else _Span.of(self.held)


def _golden_maps(imported: Imported, inputs: Array) -> Iterator[_GoldenMap]:
    """Golden's values of each map, and of each output, for some images."""
    model = imported.model
    graph = imported.graph
    trace = {INPUT: inputs, **dict(zip((layer.name for layer in model.network.layers), model.trace(inputs)))}
    makers = [INPUT, *(built.layers[-1] for built in imported.emitted.built)]  # of each map
    readings = {}  # tensor -> how sections read it, where maps begin to be known
    for section in graph.sections:
        # What a pool of the input reads may be quantised behind the pool, too.
        first_pool = isinstance(section, PassSection) and section.reads[0].map == 0
        readings.update({} if first_pool else {reading.tensor: reading for reading in section.reads})
    off = levels_off(imported)

    def known(tensor: str, span: _Span) -> _Tensor:
        reading = readings.get(tensor)
        held = None if reading is None else held_values(imported, trace[makers[reading.map]], reading)
        return _Tensor(span, held)

    def compute(operation: Operation, tensors: list[_Tensor]) -> _Tensor:
        span = _result(operation, [tensor.read for tensor in tensors], EXACT_NEAR)
        return known(operation.makes, span.off(off.get(operation.makes, 0), operation.unit))

    source = imported.operations.source
    first = known(source, _Span.of(real_inputs(imported, inputs)))
    outputs = {output.tensor for output in graph.outputs}
    leaving = {}
    for name, tensor in chain([(source, first)], computed(graph.operations, {source: first}, compute)):
        if tensor.held is not None and readings[name].map:
            yield _GoldenMap(makers[readings[name].map], tensor.span, tensor.held)
        if name in outputs:
            leaving[name] = tensor.read
    last = trace[model.network.layers[-1].name]
    depending = [output for output in imported.host.outputs if output.constant is None]
    for output, by_host in zip(graph.outputs, depending):
        span = leaving[output.tensor]
        got, low, high = (x.reshape(len(x), -1) for x in (span.x, span.low, span.high))
        against = "operations, from golden's last map"
        yield _GoldenMap(output.tensor, _Span(got, low, high), by_host.closed(last).reshape(got.shape), against)


def levels_off(imported: Imported) -> dict[str, int]:
    """By how many levels operations may be off where a section isn't exact (`Built.wrong`), by the tensor that each
    makes. A node may be in several sections, of which some are exact."""
    off = dict[str, int]()
    makers = {operation.makes: operation.name for operation in imported.graph.operations}
    for section, built in zip(imported.graph.sections, imported.emitted.built, strict=True):
        here = {reading.tensor for reading in section.reads}
        begins = {makers.get(tensor) for tensor in here}  # what quantises may do more behind that
        nodes = {section.name, *built.nodes, *begins}
        for operation in imported.graph.operations:
            # Maps that are joined may be quantised in front of that, one by one.
            passes = operation.name in nodes or isinstance(operation, Layout | Concatenation)
            if built.wrong[1] and passes and not here.isdisjoint(operation.reads):
                here.add(operation.makes)
                off[operation.makes] = built.wrong[1]
    return off


def held_values(imported: Imported, values: Array, reading: MapReading) -> Array:
    """Real numbers of golden's integers in the tensor at which a section begins: (N, ...) float64, in the tensor's
    order."""
    held = imported.choice.held[reading.map]
    source = reading.source
    real: Array = float(source.base) + float(source.step) * ((values - held.zero) // held.stride)
    for link in reading.links:
        real = link.run(real)
    outside = np.full((len(values), 1), float(reading.padded_with))  # the last place, which is that of padded values
    flat = np.concatenate([real.reshape(len(values), -1), outside], axis=1)[:, reading.order.ravel()]
    return np.asarray(flat.reshape(len(values), *reading.order.shape[1:]))


def _refuse(wrong: Array, name: str, what: str, got: Array, wanted: Array) -> None:
    """Raise ValueError if values are wrong, with the first one."""
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"{printable(name)}: the rewriting must equal {what}, got {got[place]} instead of {wanted[place]} at "
            f"{place} and {int(wrong.sum()) - 1} more"
        )
