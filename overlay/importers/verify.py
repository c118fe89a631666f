"""Each rewriting is computed again beside what it was made of; the first that does not agree is named.

1. *Operators*: every node that became operations is run by ONNX's own reference (QONNX's quantisers by their
   definition) on the tensors of random and extreme images; its operations must make the same of the same inputs.
2. *Model*: the operations between two quantisers are run in float64 on the integers that golden has there; golden's
   next integers must be the levels that come out. Of a graph that is each chain with weights. An addition is proved for
   every pair of values when it is made (sum_fit.py).

A value that lies on a boundary to within the rounding of floating point may fall to either side; such values are
counted as ties. The model itself is exact (`bitloom.overlay.importers.boundaries`); the count says how often floating
point would decide at random.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT
from bitloom.golden.host.host import CLOSINGS

from .constants import Constants
from .errors import printable
from .imported import Imported
from .joins import Concatenation, Sum, reads_of
from .operations import Levels, Operation
from .rationals import floats
from .references import reference
from .source import TFLITE, SourceGraph, SourceNode

NEAR = 1e-6
"""How near to a boundary, in parts of the largest value around, a value of float32 is a tie."""
EXACT_NEAR = 1e-11
"""The same for float64."""
MOST_AT_ONCE = 1 << 21
"""Values of the largest map, of all images that are computed at once, unless one image has more."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One rewriting that was verified.

    Attributes
    ----------
    name : str
        The node, or the map.
    against : str
        What it was compared with.
    values : int
        How many values were compared.
    ties : int
        How many of them lay on a boundary, or on a sum whose level is said to be off (`Built.wrong`).
    """

    name: str
    against: str
    values: int
    ties: int


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

    Returns
    -------
    list of Checked

    Raises
    ------
    ValueError
        That names the first rewriting that isn't right: a mistake of the importer, or of the file's operators.
    """
    numbers = range(images + 4)
    few = [*numbers[:2], *numbers[-4:]] if images > 1 else numbers
    nodes = {one.name for one in imported.operations.operations if one.op not in CLOSINGS}
    total = len(nodes) + len(imported.cut.sections)
    source = imported.source
    constants = Constants(values=dict(source.constants), grids={}, opset=source.opset)
    operators = (_operators(imported, constants, part) for part in _parts(imported, few, images, seed))
    chains = imported.chains or (imported,)
    maps = (_maps(one, part) for one in chains for part in _parts(one, numbers, images, seed))
    out: dict[tuple[str, str], Checked] = {}
    for checked in chain.from_iterable(chain(operators, maps)):
        key, same = (checked.name, checked.against), out.get((checked.name, checked.against))
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
    held, size, most = imported.choice.held[0], imported.cut.size, imported.cut.source.levels
    if number < images:
        level = np.random.default_rng((seed, number)).integers(0, most + 1, size)
    elif number < images + 2:
        level = np.full(size, most * (number - images))
    else:
        level = (sum(np.ogrid[tuple(map(slice, size))]) + number - images) % 2 * most
    return held.zero + held.stride * level


def real_inputs(imported: Imported, inputs: Array) -> Array:
    """What integers of the input map stand for, as the file's input: (N, *shape) float64.

    Where the host quantises, real numbers are found that are quantised to these integers.
    """
    held, source = imported.choice.held[0], imported.cut.source
    level = (inputs - held.zero) // held.stride
    if source.boundaries is None:
        x = float(source.base) + float(source.step) * level
    else:
        limits = floats(source.boundaries)
        room = limits[:, -1:] - limits[:, :1] + 1
        ends = np.concatenate([limits[:, :1] - room, limits, limits[:, -1:] + room], axis=1)
        middle = (ends[:, 1:] + ends[:, :-1]) / 2
        x = np.stack([middle[c if len(middle) > 1 else 0][level[..., c]] for c in range(level.shape[-1])], axis=-1)
        for kind, first, second in reversed(imported.host.front):
            x = (x - second) / first if kind == "line" else np.clip(x, first, second)
    flat = x.reshape(len(x), -1)[:, imported.host.order]
    return flat.reshape(len(x), *imported.host.shape)


def _operators(imported: Imported, constants: Constants, inputs: Array) -> Iterator[Checked]:
    """Every node against its operations; ``constants`` keep those that are computed."""
    source = imported.source
    by_node: dict[str, list[Operation]] = {}
    for operation in imported.operations.operations:
        by_node.setdefault(operation.name, []).append(operation)
    tensors = [{source.source.name: x[None]} for x in real_inputs(imported, inputs)]
    for values in tensors:
        values[source.source.name] = values[source.source.name].astype(source.source.dtype)
    for node in source.nodes:
        if node.outputs[0] in constants.values:
            continue
        if constants.can_fold(node) and (node.inputs or node.op == "Constant"):
            constants.fold(node)
            continue
        for values in tensors:
            values[node.outputs[0]] = _reference(node, values, constants, source)
        if node.op == "Shape":
            constants.values[node.outputs[0]] = tensors[0][node.outputs[0]]
            continue
        if node.op not in CLOSINGS:
            yield _node_checked(node, by_node[node.name], tensors)


def _reference(node: SourceNode, values: dict[str, Array], constants: Constants, source: SourceGraph) -> Array:
    """What a node makes of tensors, as its definition has it."""
    inputs = [None if not name else values.get(name, constants.values.get(name)) for name in node.inputs]
    return reference(node, inputs, source.opset)


def _node_checked(node: SourceNode, operations: list[Operation], tensors: list[dict[str, Array]]) -> Checked:
    count = ties = 0
    for values in tensors:
        x = _read(operations[0], values)
        got, low, high = _run(operations, x, 0.0 if node.domain == TFLITE else NEAR)  # integers are on no boundary
        wanted = values[node.outputs[0]].astype(np.float64).reshape(got.shape)
        room = 1e-4 * max(1.0, float(np.abs(wanted).max(initial=0))) if not _quantises(operations) else 1e-5
        wrong = np.abs(got - wanted) > room * (1 + np.abs(wanted))
        tied = wrong & (low - room <= wanted) & (wanted <= high + room)
        _require(not (wrong & ~tied).any(), node.name, "the operator's own definition", got, wanted, wrong & ~tied)
        count, ties = count + got.size, ties + int(tied.sum())
    return Checked(name=node.name, against=f"{node.op} as it is defined", values=count, ties=ties)


def _read(operation: Operation, values: dict[str, Array]) -> Array:
    """What an operation reads, in float64; of a sum both tensors, one behind the other."""
    if isinstance(operation, Concatenation):
        return operation.together([values[name].astype(np.float64) for name in reads_of(operation)])
    if isinstance(operation, Sum):
        return np.stack([values[name].astype(np.float64) for name in (operation.reads, operation.also)])
    return values[operation.reads].astype(np.float64)


def _quantises(operations: list[Operation]) -> bool:
    return any(isinstance(operation, Levels) for operation in operations)


def _run(operations: list[Operation], x: Array, near: float) -> tuple[Array, Array, Array]:
    """What operations make of x, and the least and the most of it where quantisers see a little less or more."""
    ran = x, x, x
    for operation in operations:
        ran = _one(operation, ran, near)
    return ran


def _maps(imported: Imported, inputs: Array) -> Iterator[Checked]:
    """Golden's maps against the operations between them."""
    model, cut = imported.model, imported.cut
    trace = {INPUT: inputs, **dict(zip((layer.name for layer in model.network.layers), model.trace(inputs)))}
    pooled = cut.head is not None and len(cut.head.pools)
    first = model.network.layers[pooled - 1].name if pooled else INPUT
    last_layers = [first, *(built.layers[-1] for built in imported.emitted.built)]
    operations = imported.cut.chain
    places = {section.reads: number for number, section in enumerate(cut.sections)}
    begin, now = next(k for k, operation in enumerate(operations) if operation.reads in places), 0
    x = low = high = np.empty(0)
    if pooled:
        x = low = high = real_inputs(imported, inputs)
        for operation in operations[:begin]:
            x, low, high = _one(operation, (x, low, high), EXACT_NEAR)
    for operation in operations[begin:]:
        number = places.get(operation.reads)
        if number is not None:
            held = _held_values(imported, trace[last_layers[number]], number)
            if number or pooled:
                yield _map_checked(last_layers[number], (x, low, high), held)
            x, low, high, now = held, held, held, number
        x, low, high = _one(operation, (x, low, high), EXACT_NEAR)
        if isinstance(operation, Levels):  # where integers can't be exact, so much is said to be off
            off = imported.emitted.built[now].wrong[1] * float(operation.step)
            low, high = low - off, high + off
    scores = imported.host.scores(trace[last_layers[-1]])
    got = x.reshape(len(x), -1)
    room = 1e-9 * max(1.0, float(np.abs(got).max(initial=0)))
    ends = low.reshape(got.shape) - room, high.reshape(got.shape) + room
    wrong = (scores < ends[0]) | (scores > ends[1])
    _require(not wrong.any(), imported.operations.output, "the operations that it was made of", scores, got, wrong)
    ties = int((np.abs(scores - got) > room).sum())
    last = "operations, from golden's last map"
    yield Checked(name=imported.operations.output, against=last, values=got.size, ties=ties)


def _one(operation: Operation, ran: tuple[Array, Array, Array], near: float) -> tuple[Array, Array, Array]:
    """One operation of `_run`."""
    x, low, high = ran
    if isinstance(operation, Levels):
        largest = max(float(np.abs(values).max(initial=0)) for values in (x, floats(operation.boundaries)))
        little = near * max(largest, 1e-30)
        return operation.run(x), operation.run(low - little), operation.run(high + little)
    if low is x and high is x:
        return (operation.run(x),) * 3
    ends = operation.run(low), operation.run(high)
    return operation.run(x), np.minimum(*ends), np.maximum(*ends)


def _held_values(imported: Imported, values: Array, number: int) -> Array:
    """What golden's integers stand for in the tensor at which a section begins: (N, ...) float64, in its order."""
    section, held = imported.cut.sections[number], imported.choice.held[number]
    source = imported.cut.source if number == 0 else imported.cut.sections[number - 1].made
    assert section.there is not None
    assert section.order is not None
    assert source is not None
    real = float(source.base) + float(source.step) * ((values - held.zero) // held.stride)
    real = real * floats(section.there.multiply) + floats(section.there.add)
    shape = imported.operations.shapes[section.reads]
    outside = np.zeros((len(values), 1))  # the last place, which is that of padded values
    flat = np.concatenate([real.reshape(len(values), -1), outside], axis=1)[:, section.order.ravel()]
    return flat.reshape(len(values), *shape[1:])


def _map_checked(name: str, ran: tuple[Array, Array, Array], held: Array) -> Checked:
    x, low, high = ran
    room = 1e-9 * max(1.0, float(np.abs(x).max(initial=0)))
    wrong = np.abs(x - held) > room
    tied = wrong & (low - room <= held) & (held <= high + room)
    _require(not (wrong & ~tied).any(), name, "the operations that it was made of", held, x, wrong & ~tied)
    return Checked(name=name, against="operations, from golden's map before", values=x.size, ties=int(tied.sum()))


def _require(good: bool, name: str, what: str, got: Array, wanted: Array, wrong: Array) -> None:
    if not good:
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"{printable(name)}: the rewriting must equal {what}, got {got[place]} instead of {wanted[place]} at "
            f"{place} and {int(wrong.sum()) - 1} more"
        )

