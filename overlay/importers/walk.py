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
from .map_view import MapView, spreading
from .operations import AxesReduction, Closing, Elementwise, Layout, Levels, Linear, Operation, Padding, Pooling
from .stands import AtMap, Stand
from .trail import Trail, Unlinked


class Walk:
    """A walk along a trail's operations.

    Parameters
    ----------
    trail : Trail
        At the tensor of a map that the walk begins with.
    """

    def __init__(self, trail: Trail) -> None:
        self.stand: Stand = AtMap(trail=trail)

    @property
    def trail(self) -> Trail:
        """The trail as far as the walk has come."""
        return self.stand.trail

    def take(self, place: int) -> None:
        """One operation further.

        Raises
        ------
        ImportRefused
            With a line for an operation that can't be taken.
        """
        self.stand = self.stand.with_trail(self.trail.taking(place))
        operation = self.trail.operations[place]
        try:
            self._take(operation)
        except ValueError as e:
            raise ImportRefused([node_line(operation.name, operation.op, e)]) from None
        trail = self.trail
        links = self.stand.links
        moves = isinstance(operation, Layout | Padding)  # the same values elsewhere: some, or padded, or several times
        pools = isinstance(operation, Pooling | AxesReduction)
        if pools or (not links and (trail.view.has_each_once or not moves)):
            unlinked = Unlinked(operation.makes, trail.view, links)
            self.stand = self.stand.with_trail(replace(trail, unlinked=unlinked))

    def leave_to_host(self) -> None:
        """Let the host have all that was taken so far."""
        self.stand = AtMap(trail=replace(self.trail, nodes=()))

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
        stand = self.stand.in_front_of(operation)
        self.stand = stand.at(stand.trail.view.around(operation))

    @_take.register
    def _layout(self, operation: Layout) -> None:
        stand = self.stand.in_front_of(operation)
        self.stand = stand.at(stand.trail.view.laid_out(operation))

    @_take.register
    def _closing(self, operation: Closing) -> None:
        stand = self.stand.in_front_of(operation)
        closing = (*stand.trail.closing, (operation, stand.trail.view.index))
        self.stand = stand.with_trail(replace(stand.trail, closing=closing))

    # Steps of a map, sums or means

    @_take.register
    def _elementwise(self, operation: Elementwise) -> None:
        stand = self.stand.in_front_of(operation)
        if not operation.link.reversible:
            stand.check_curve(operation.link)
        view = stand.trail.view
        link = operation.link.placed(lambda array: view.channel_values(array, "what it computes"))
        stand = stand.follow(link)
        padded = view.is_padded
        self.stand = stand.at(replace(view, padded_with=view.behind(link, view.padded_with))) if padded else stand

    @_take.register
    def _levels(self, operation: Levels) -> None:
        operation = self._of_channels(operation)
        self.stand = self.stand.quantise(operation).copy_channels()

    @_take.register
    def _linear(self, operation: Linear) -> None:
        self.stand = self.stand.weigh(operation)

    @_take.register
    def _pooling(self, operation: Pooling) -> None:
        view = self.trail.view
        if view.lies_aside(operation.window):
            self.stand = _pooled(self.stand.aside, operation.aside).aside
        else:
            self.stand = _pooled(self.stand, operation)

    @_take.register
    def _reduction(self, operation: AxesReduction) -> None:
        stand = self.stand.in_front_of(operation)
        view = stand.trail.view
        kernel, index = view.reduced(operation.axes)
        window = Window(kernel=kernel)
        pooling = operation.become(Pooling, window=window, average=operation.average)
        size = (*window.output_size(*view.size[:2]), view.size[2])
        self.stand = _pooled_to(stand, pooling, replace(view, index=index, size=size))

    def _of_channels(self, operation: Levels) -> Levels:
        """A quantiser whose numbers of each channel are in the order of golden's map."""
        self.stand = self.stand.in_front_of(operation)
        view = self.trail.view
        boundaries = operation.boundaries
        rule = operation.rule
        if not boundaries.is_uniform:
            (numbers,) = spreading(operation, view.index.ndim)
            order = view.channel_values(numbers, "thresholds")
            boundaries = boundaries.of_channels(order.astype(np.int64))
            if rule is not None:
                rule = replace(rule, multipliers=tuple(rule.multipliers[place] for place in order))
        elif rule is not None and len(rule.multipliers) == 1:
            rule = replace(rule, multipliers=rule.multipliers * view.size[2])
        return replace(operation, boundaries=boundaries, rule=rule)


def _pooled(stand: Stand, operation: Pooling) -> Stand:
    """The stand behind a pool of windows."""
    stand, operation = stand.in_front_of_pool(operation)
    view = stand.trail.view
    view.check_order()
    return _pooled_to(stand, operation, view.of_map((*operation.window.output_size(*view.size[:2]), view.size[2])))


def _pooled_to(stand: Stand, operation: Pooling, view: MapView) -> Stand:
    """The stand behind a pool that makes this tensor."""
    stand = stand.average(operation) if operation.average else stand.pool(operation)
    return stand.at(view).copy_channels()
