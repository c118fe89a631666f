"""One module: who drives each bit, who reads it, and which inputs an output depends on without a register between."""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from pyverilog.vparser import ast

from .process import process
from .scope import Ref, Scope

_NUMBERED = re.compile("Tmp_|_tmp")
_ITEMS = (ast.Decl, ast.Assign, ast.Always, ast.InstanceList, ast.Function, ast.Pragma)


class Driver(NamedTuple):
    """Bits of a signal with what makes them; ``depends`` tells what bits low..high depend on combinationally."""

    ref: Ref
    source: str
    depends: Callable[[int, int], Iterable[Ref]]


def _low(driver: Driver) -> int:
    return driver.ref.low


def _on_nothing(low: int, high: int) -> Iterable[Ref]:
    """State and inputs of the module."""
    return ()


class Module:
    """A module, checked by itself; the modules that it instantiates are in ``others``."""

    def __init__(self, node: ast.ModuleDef, others: Mapping[str, "Module"], library: Collection[str], clock: str):
        self.node, self.others, self.library, self.clock = node, others, library, clock
        self.scope = Scope(node)
        self.drivers: dict[str, list[Driver]] = {}
        self.reads: set[Ref] = set()
        self._free: set[str] = set()  # connected to a library module, which may drive them
        self._edges: dict[Ref, list[Ref]] = {}
        self._inputs: dict[Ref, list[Ref]] = {}
        for signal in self.scope.signals.values():
            if signal.port == "input":
                self._drive(signal.whole, "the port", _on_nothing)
        for item in node.items:
            self._item(item)
        self._names()
        self._driven()

    def _item(self, item: ast.Node) -> None:
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
        elif isinstance(item, ast.Function):
            self._function(item)
        elif not isinstance(item, _ITEMS):
            kind = {"Initial": "initial blocks are", "GenerateStatement": "generate is"}.get(type(item).__name__)
            self.scope.report("", f"{kind or type(item).__name__ + ' is'} not allowed in generated Verilog")

    def _drive(self, ref: Ref, source: str, depends: Callable[[int, int], Iterable[Ref]]) -> None:
        drivers = self.drivers.setdefault(ref.name, [])  # in order of their lowest bit
        place = bisect_right(drivers, ref.low, key=_low)
        for other in drivers[max(place - 1, 0) : place + 1]:
            if other.ref.low <= ref.high and ref.low <= other.ref.high:
                self.scope.report(ref.name, f"must be driven once, got {other.source} and {source}")
                break
        drivers.insert(place, Driver(ref, source, depends))

    def _assign(self, node: ast.Assign) -> None:
        scope = self.scope
        if node.ldelay or node.rdelay:
            scope.report("assign", "delays are for test benches")
        self.reads.update(scope.refs(node.right))
        self.reads.update(scope.index_refs(node.left))
        for target in scope.targets(node.left, node.lineno):

            def depends(low: int, high: int, shift: int = target.offset - target.ref.low) -> Iterable[Ref]:
                return scope.bits(node.right, low + shift, high + shift)

            self._drive(target.ref, f"assign in line {node.lineno}", depends)

    def _always(self, node: ast.Always) -> None:
        found = process(self.scope, node, self.clock)
        self.reads |= found.reads
        for name, mask in found.written.items():
            refs = () if found.clocked else found.values[name].depends

            def depends(low: int, high: int, refs: Iterable[Ref] = refs) -> Iterable[Ref]:
                return refs

            for part in _runs(name, mask):
                self._drive(part, f"always in line {node.lineno}", depends)

    def _function(self, node: ast.Function) -> None:
        """A function must be a function of its inputs, so that a call depends on its arguments alone."""
        local = {d.name for s in node.statement if isinstance(s, ast.Decl) for d in s.list} | {node.name}
        for name in _identifiers(node.statement) - local - set(self.scope.constants) - set(self.scope.functions):
            self.scope.report(node.name, f"a function must read its inputs only, got {name}")

    def _instance(self, node: ast.Instance) -> None:
        label = node.name
        other = self.others.get(node.module)
        if node.array is not None:
            self.scope.report(label, "arrays of instances are not allowed in generated Verilog")
        if other is None and node.module not in self.library:
            self.scope.report(label, f"module {node.module} is not known")
        connected = {port.portname: port.argname for port in node.portlist}
        if None in connected:
            self.scope.report(label, "ports must be connected by name")
            connected.pop(None)
        if other is None:
            for value in connected.values():
                for ref in () if value is None else self.scope.refs(value):
                    self._free.add(ref.name)
            return
        if len(connected) != len(node.portlist):
            self.scope.report(label, "each port must be connected once")
        overrides = {p.paramname: self.scope.const(p.argname) for p in node.parameterlist}
        constant = {name: value for name, value in overrides.items() if value is not None}
        inner = Scope(other.node, constant) if constant else other.scope
        ports = {s.name: s for s in inner.signals.values() if s.port}
        for name in connected.keys() - ports.keys():
            self.scope.report(label, f"module {node.module} has no port {name}")
        for name, port in ports.items():
            value = connected.get(name)
            if value is None:
                if port.port == "input":
                    self.scope.report(label, f"input {name} must be connected")
                continue
            self._width(label, name, port.width, value)
            if port.port == "input":
                self._input(label, other, name, value)
            else:
                self._output(label, other, name, value, connected)

    def _width(self, label: str, port: str, width: int, value: ast.Node) -> None:
        got, constant = self.scope.width(value), self.scope.const(value)
        if got is None and constant is not None and constant.bit_length() <= width:
            return
        if got is None and constant is not None:
            got = constant.bit_length()
        if got is not None and got != width:
            self.scope.report(label, f"port {port} must be connected to {width} bits, got {got}")

    def _input(self, label: str, other: "Module", port: str, value: ast.Node) -> None:
        is_clock = isinstance(value, ast.Identifier) and value.name == self.clock
        if port == other.clock and not is_clock:
            self.scope.report(label, f"port {port} must be connected to {self.clock}")
        if not (is_clock and port == other.clock):
            self.reads.update(self.scope.refs(value))

    def _output(
        self, label: str, other: "Module", port: str, value: ast.Node, connected: Mapping[str, ast.Node | None]
    ) -> None:
        if not _is_place(value):
            self.scope.report(label, f"output {port} must be connected to a signal")
            return
        self.reads.update(self.scope.index_refs(value))

        for target in self.scope.targets(value, 0):

            def depends(low: int, high: int, shift: int = target.offset - target.ref.low) -> Iterable[Ref]:
                for source in other.inputs_of(Ref(port, low + shift, high + shift)):
                    argument = connected.get(source.name)
                    if argument is not None:
                        yield from self.scope.bits(argument, source.low, source.high)

            self._drive(target.ref, f"instance {label}", depends)

    def _names(self) -> None:
        """No names that are numbered by the generator: they change by the dozen when one register is added."""
        instances = [i.name for item in self.node.items if isinstance(item, ast.InstanceList) for i in item.instances]
        for name in [*self.scope.signals, *self.scope.functions, *instances]:
            if _NUMBERED.search(name):
                self.scope.report(name, "names must say what they are, got a numbered one")

    def _driven(self) -> None:
        """Every bit that is read, and every output, has a driver; the clock is no data."""
        need: dict[str, int] = {}
        for ref in [*self.reads, *(s.whole for s in self.scope.signals.values() if s.port == "output")]:
            need[ref.name] = need.get(ref.name, 0) | ref.mask
        for name, signal in self.scope.signals.items():
            missing = need.get(name, 0) if name not in self._free else 0
            for driver in self.drivers.get(name, ()):
                missing &= ~driver.ref.mask
            if missing:
                some = "" if missing == signal.whole.mask else f", got none for bits {_bits(name, missing)}"
                what = "an output must be driven" if signal.port == "output" else "is read and must be driven"
                self.scope.report(name, what + some)
        if self.clock in need:
            self.scope.report(self.clock, "the clock must not be used as data")

    def edges(self, ref: Ref) -> list[Ref]:
        """What bits depend on directly, without a register between."""
        if ref not in self._edges:
            found: dict[Ref, None] = {}
            drivers = self.drivers.get(ref.name, [])
            first = max(bisect_right(drivers, ref.low, key=_low) - 1, 0)
            for driver in islice(drivers, first, bisect_right(drivers, ref.high, key=_low)):
                low, high = max(ref.low, driver.ref.low), min(ref.high, driver.ref.high)
                if low <= high:
                    found.update(dict.fromkeys(driver.depends(low, high)))
            self._edges[ref] = list(found)
        return self._edges[ref]

    def inputs_of(self, output: Ref) -> list[Ref]:
        """Bits of input ports that ``output`` depends on, without a register between."""
        if output not in self._inputs:  # asked for by every instance
            seen, todo = {output}, [output]
            while todo:
                fresh = [ref for ref in self.edges(todo.pop()) if ref not in seen]
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


def _bits(name: str, mask: int) -> str:
    """``mask`` for people: ``7:4, 1``."""
    return ", ".join(f"{r.high}:{r.low}" if r.high > r.low else f"{r.low}" for r in reversed(list(_runs(name, mask))))


def _identifiers(nodes: Iterable[ast.Node]) -> set[str]:
    """Names of all identifiers below ``nodes``."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Identifier):
            found.add(node.name)
        found |= _identifiers(node.children())
    return found
