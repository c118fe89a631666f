"""One module: who drives each bit, and which inputs an output depends on without a register between."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from pyverilog.vparser import ast

from .bits import bits, targets
from .constructs import check_constructs, identifiers
from .process import process
from .scope import Ref, Scope


class Driver(NamedTuple):
    """Bits of a signal with what makes them."""

    ref: Ref
    """The bits."""
    source: str
    """The driver of the bits, such as an instance, for messages."""
    depends: Callable[[int, int], Iterable[Ref]]
    """``depends(low, high)`` is what bits low..high of the signal depend on in the same cycle."""


Elaborate = Callable[[str, Mapping[str, int]], "Module | None"]
"""Name and values of parameters -> the module with these values."""


def _low(driver: Driver) -> int:
    return driver.ref.low


class Module:
    """A module, held to the rules of one driver and of one clock; findings go to its scope.

    Parameters
    ----------
    node
        Its syntax tree, whose lines count from the module's first one.
    lines_before
        Lines of the text before that one.
    elaborate
        Gives the module of a name with the values of an instance's parameters; None where the text has none.
    clock
        Name of the clock in every module.
    values
        Values of this module's own parameters, by name; others are at their defaults.

    Attributes
    ----------
    scope : Scope
        Its names and findings.
    drivers : dict
        Name of a signal -> its drivers, by their lowest bit.
    """

    def __init__(
        self,
        node: ast.ModuleDef,
        lines_before: int,
        elaborate: "Elaborate",
        clock: str,
        values: Mapping[str, int] | None = None,
    ):
        self.clock = clock
        self._elaborate = elaborate
        self._lines_before = lines_before
        self.scope = Scope(node, values)
        self.drivers: dict[str, list[Driver]] = {}
        self._data: set[str] = set()  # names that are read or written other than as the clock
        self._edges: dict[Ref, list[Ref]] = {}
        self._inputs: dict[Ref, list[Ref]] = {}
        check_constructs(self.scope, node)
        for item in node.items:
            self._item(item)
        as_output = clock in self.scope.signals and self.scope.signals[clock].port == "output"
        if clock in self._data or as_output:
            self.scope.report(clock, "the clock must not be used as data")

    def _item(self, item: ast.Node) -> None:
        """Account for what one item of the module drives."""
        if isinstance(item, ast.Always):
            self._always(item)
        elif isinstance(item, ast.InstanceList):
            for instance in item.instances:
                self._instance(instance)
        elif isinstance(item, ast.Decl):
            for assign in item.list:
                if isinstance(assign, ast.Assign):
                    self._assign(assign)
        elif isinstance(item, ast.Assign):
            self._assign(item)

    def _drive(self, ref: Ref, source: str, depends: Callable[[int, int], Iterable[Ref]]) -> None:
        """Add a driver, and report one that drives some of the bits already."""
        drivers = self.drivers.setdefault(ref.name, [])
        place = bisect_right(drivers, ref.low, key=_low)
        for other in drivers[max(place - 1, 0) : place + 1]:
            if other.ref.low <= ref.high and ref.low <= other.ref.high:
                self.scope.report(ref.name, f"must be driven once, got {other.source} and {source}")
                break
        drivers.insert(place, Driver(ref, source, depends))

    def _assign(self, node: ast.Assign) -> None:
        self._data |= identifiers([node])
        for target in targets(self.scope, node.left):

            def depends(low: int, high: int, shift: int = target.offset - target.ref.low) -> Iterable[Ref]:
                return bits(self.scope, node.right, low + shift, high + shift)

            self._drive(target.ref, f"assign in line {self._lines_before + node.lineno}", depends)

    def _always(self, node: ast.Always) -> None:
        self._data |= identifiers([node.statement])
        block = process(self.scope, node, self.clock)

        def depends(low: int, high: int) -> Iterable[Ref]:
            return block.depends

        for name, mask in block.written.items():
            for part in _runs(name, mask):
                self._drive(part, f"always in line {self._lines_before + node.lineno}", depends)

    def _instance(self, node: ast.Instance) -> None:
        """Connect an instance; ports that it doesn't have and instances of no known module drive nothing."""
        other = self._elaborate(node.module, self._values(node))
        if other is None:
            return
        connected = {p.portname: p.argname for p in node.portlist if p.portname is not None and p.argname is not None}
        for name, value in connected.items():
            if name == self.clock:
                if not (isinstance(value, ast.Identifier) and value.name == self.clock):
                    self.scope.report(node.name, f"port {name} must be connected to {self.clock}")
            else:
                self._data |= identifiers([value])
            if name in other.scope.signals and other.scope.signals[name].port == "output":
                self._output(node.name, other, name, connected)

    def _values(self, node: ast.Instance) -> dict[str, int]:
        """The values that an instance gives parameters."""
        values = {}
        for parameter in node.parameterlist:
            value = self.scope.const(parameter.argname)
            if parameter.paramname is None:
                self.scope.report(node.name, "parameters must be set by name")
            elif value is None:
                self.scope.report(node.name, f"parameter {parameter.paramname} must be a constant")
            else:
                values[parameter.paramname] = value
        return values

    def _output(self, label: str, other: "Module", port: str, connected: Mapping[str, ast.Node]) -> None:
        """Bits that an output of an instance drives: they depend on what is connected to the inputs behind it."""
        if not _is_place(connected[port]):
            self.scope.report(label, f"output {port} must be connected to a signal")
            return
        for target in targets(self.scope, connected[port]):

            def depends(low: int, high: int, shift: int = target.offset - target.ref.low) -> Iterable[Ref]:
                for source in other.inputs_of(Ref(port, low + shift, high + shift)):
                    if source.name in connected:
                        yield from bits(self.scope, connected[source.name], source.low, source.high)

            self._drive(target.ref, f"instance {label}", depends)

    def _directly(self, ref: Ref) -> list[Ref]:
        """The bits on which bits depend without a register or another signal between."""
        if ref not in self._edges:
            sources: dict[Ref, None] = {}
            drivers = self.drivers.get(ref.name, [])
            first = max(bisect_right(drivers, ref.low, key=_low) - 1, 0)
            for driver in islice(drivers, first, bisect_right(drivers, ref.high, key=_low)):
                low = max(ref.low, driver.ref.low)
                high = min(ref.high, driver.ref.high)
                if low <= high:
                    sources.update(dict.fromkeys(driver.depends(low, high)))
            self._edges[ref] = list(sources)
        return self._edges[ref]

    def inputs_of(self, output: Ref) -> list[Ref]:
        """The bits of input ports on which bits depend in the same cycle.

        Parameters
        ----------
        output
            Bits of any signal of the module.

        Returns
        -------
        list of Ref
            Bits of input ports, sorted.
        """
        if output not in self._inputs:  # asked for by every instance
            seen = {output}
            todo = [output]
            while todo:
                fresh = [ref for ref in self._directly(todo.pop()) if ref not in seen]
                seen.update(fresh)
                todo += fresh
            ports = {s.name for s in self.scope.signals.values() if s.port == "input"}
            self._inputs[output] = sorted(ref for ref in seen if ref.name in ports)
        return self._inputs[output]


def _is_place(e: ast.Node) -> bool:
    """``e`` can be written to."""
    if isinstance(e, ast.Concat):
        return all(_is_place(part) for part in e.list)
    return isinstance(e, (ast.Identifier, ast.Pointer, ast.Partselect))


def _runs(name: str, mask: int) -> Iterable[Ref]:
    """The runs of ones in ``mask``."""
    low = 0
    while mask >> low:
        low += ((mask >> low) & -(mask >> low)).bit_length() - 1
        ones = (~(mask >> low) & ((mask >> low) + 1)).bit_length() - 1
        yield Ref(name, low, low + ones - 1)
        low += ones
