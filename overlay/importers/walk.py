"""The walk along operations that follow one another, which makes sections of them: a step for each operation.

A step either moves the values of the tensor that the walk stands at, which becomes another view of the map
(map_view.py), or it is taken by what the walk stands at: a map, sums or means (stands.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatchmethod

import numpy as np

from bitloom.golden.window import Window

from .errors import ImportRefused, node_line, printable
from .links import Line
from .map_view import ASIDE, MapView, spreading
from .operations import Closing, Elementwise, Layout, Levels, Linear, Operation, Padding, Pooling, Reduction
from .stands import AtMap, AtMean, AtSums, Stand
from .trail import Trail, Unlinked


class Walk:
    """A walk along a trail's operations.

    Parameters
    ----------
    trail : Trail
        At the tensor of a map that the walk begins with.
    """

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        self.stand: Stand = AtMap(trail)

    def take(self, place: int) -> None:
        """One operation further.

        Raises
        ------
        ImportRefused
            With a line for an operation that can't be taken.
        """
        trail = self.trail
        operation = trail.operations[place]
        trail.place = place
        trail.note(operation.name)
        try:
            self._take(operation)
        except ValueError as e:
            raise ImportRefused([node_line(operation.name, operation.op, e)]) from None
        links = self.stand.links
        moves = isinstance(operation, Layout | Padding)  # the same values elsewhere: some, or padded, or several times
        pools = isinstance(operation, Pooling | Reduction)
        if pools or (not links and (trail.view.has_each_once or not moves)):
            trail.unlinked = Unlinked(operation.makes, trail.view, links)

    def leave_to_host(self) -> None:
        """Let the host have all that was taken so far."""
        self.stand = AtMap(self.trail)
        self.trail.nodes = []

    def copy_map(self, following: Operation, at_end: bool = False) -> None:
        """Make the map again, in front of an operation or ``at_end`` behind it: see `Stand.copy`."""
        try:
            self.stand = self.stand.copy(following, at_end)
        except ValueError as e:
            raise ImportRefused([node_line(following.name, following.op, e)]) from None

    def quantise_copy(self, operations: Sequence[Operation]) -> None:
        """Quantise a copy of the map that the walk begins at, by scales, bends and a quantiser that follow where the
        map is joined with others."""
        *links, quantiser = operations
        for operation in links:
            self._take(operation)
        assert isinstance(quantiser, Levels)
        assert isinstance(self.stand, AtMap)
        second = self.stand.second(quantiser)
        if second.is_straight:
            self.stand = self.stand.begin_copy(quantiser, Line.identity(self.trail.channels))
            self.stand = self.stand.quantise(self._of_channels(quantiser))
        else:
            self.stand = self.stand.look_up(second)

    def finish(self) -> None:
        """End the walk behind the last operation; ImportRefused if it can't end there."""
        trail = self.trail
        last = trail.operations[-1] if trail.operations else None
        if last is not None and not trail.view.has_each_once:
            for closing, _ in trail.closing:
                if closing.classes > 1:
                    why = f"what it makes must leave whole, got some values, by {printable(last.name)}"
                    raise ImportRefused([node_line(closing.name, closing.op, why)])
            self.copy_map(last, at_end=True)
        self.stand = self.stand.end()

    @singledispatchmethod
    def _take(self, operation: Operation) -> None:
        """Take an operation of a kind."""
        raise NotImplementedError(type(operation).__name__)

    # Steps that move values

    @_take.register
    def _padding(self, operation: Padding) -> None:
        self.stand = self.stand.in_front_of(operation)
        self.trail.view = self.trail.view.around(operation)

    @_take.register
    def _layout(self, operation: Layout) -> None:
        self.stand = self.stand.in_front_of(operation)
        self.trail.view = self.trail.view.laid_out(operation)

    @_take.register
    def _closing(self, operation: Closing) -> None:
        self.stand = self.stand.in_front_of(operation)
        self.trail.closing.append((operation, self.trail.view.index))

    # Steps of a map, sums or means

    @_take.register
    def _elementwise(self, operation: Elementwise) -> None:
        self.stand = self.stand.in_front_of(operation)
        if operation.link.looked_up:
            self.stand.check_curve(operation.link)
        view = self.trail.view
        link = operation.link.placed(lambda array: view.channel_values(array, "what it computes"))
        self.stand.follow(link)
        if view.is_padded:
            self.trail.view = replace(view, padded_with=view.behind(link, view.padded_with))

    @_take.register
    def _levels(self, operation: Levels) -> None:
        operation = self._of_channels(operation)
        self.stand = self.stand.quantise(operation).copy_channels()

    @_take.register
    def _linear(self, operation: Linear) -> None:
        if not isinstance(self.stand, AtMap):
            self.stand = self.stand.weigh(operation)
        elif self.trail.view.lies_aside(operation.window):
            self._take_aside(operation)
        else:
            self.stand = self.stand.in_front_of(operation).weigh(operation)

    @_take.register
    def _pooling(self, operation: Pooling) -> None:
        if self.trail.view.lies_aside(operation.window):
            self._take_aside(operation)
            return
        self.stand, operation = self.stand.in_front_of_pool(operation)
        view = self.trail.view
        view.check_order()
        self._pool_by(operation, view.of_map((*operation.window.output_size(*view.size[:2]), view.size[2])))

    @_take.register
    def _reduction(self, operation: Reduction) -> None:
        self.stand = self.stand.in_front_of(operation)
        view = self.trail.view
        kernel, index = view.reduced(operation.axes)
        window = Window(kernel=kernel)
        named = {"name": operation.name, "op": operation.op, "reads": operation.reads, "makes": operation.makes}
        pooling = Pooling(**named, window=window, average=operation.average)
        size = (*window.output_size(*view.size[:2]), view.size[2])
        self._pool_by(pooling, replace(view, index=index, size=size))

    def _pool_by(self, operation: Pooling, pooled: MapView) -> None:
        """Let a pool follow, behind which the tensor is this one."""
        stand = self.stand.average(operation) if operation.average else self.stand.pool(operation)
        self.trail.view = pooled
        self.stand = stand.copy_channels()

    def _take_aside(self, operation: Linear | Pooling) -> None:
        """Take an operation of a tensor that is the map on its side, by a window on its side."""
        trail = self.trail
        trail.view = trail.view.aside
        self._take(operation.aside)
        trail.view = trail.view.aside
        stand = self.stand
        if isinstance(operation, Pooling) and isinstance(stand, AtMean):
            stand.view = stand.view.aside
        if isinstance(operation, Linear) and isinstance(stand, AtSums):
            reads = tuple(replace(each, order=each.order.transpose(ASIDE)) for each in stand.section.reads)
            stand.section = replace(stand.section, reads=reads)

    def _of_channels(self, operation: Levels) -> Levels:
        """A quantiser whose numbers of each channel are in the order of golden's map."""
        self.stand = self.stand.in_front_of(operation)
        view = self.trail.view
        boundaries = operation.boundaries
        rule = operation.rule
        if len(boundaries) > 1:
            (numbers,) = spreading(operation, view.index.ndim)
            order = view.channel_values(numbers, "thresholds")
            boundaries = boundaries[order.astype(np.int64)]
            if rule is not None:
                rule = replace(rule, multipliers=tuple(rule.multipliers[place] for place in order))
        elif rule is not None and len(rule.multipliers) == 1:
            rule = replace(rule, multipliers=rule.multipliers * view.size[2])
        return replace(operation, boundaries=boundaries, rule=rule)
