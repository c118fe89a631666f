"""The little that every generated module shares: sized expressions, and a block with clock, reset and registers.

Verilator's -Wall wants every operand as wide as its result; the helpers below size constants and pad signals, so that
modules say what they mean. Numbers are unsigned or two's complement by use; no signal is declared signed.

A module may have parameters, which each instance sets: a RAM's width and depth. Where a signal is as wide as a
parameter says, expressions stay as they are written, with plain numbers (``level + 1``).
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from veriloggen import Cat, Instance, Int, Module, Mux, Repeat, Seq
from veriloggen.core import vtypes as vt

from .parameters import value_of
from .port_names import meaning_of
from .text import Header, broken_lines, header_lines, section_comment
from .writer import module_text

Signal = Any  # a Veriloggen expression
Size = Any  # bits or rows: a number, or an expression of the module's parameters
_ONE_BIT = (
    *(vt.LessThan, vt.GreaterThan, vt.LessEq, vt.GreaterEq, vt.Eq, vt.NotEq),
    *(vt.Land, vt.Lor, vt.Ulnot, vt.Uand, vt.Uor, vt.Uxor),
)


def const(value: int, width: int) -> Signal:
    """Sized unsigned constant; negative values wrap."""
    return Int(value & ((1 << width) - 1), width=width, base=10 if width <= 32 else 16)


def width(e: Signal) -> int:
    """Width in bits of an expression, by Verilog's rules for self-determined operands."""
    if isinstance(e, vt.Int):
        return e.width
    if isinstance(e, vt._Variable):
        if _by_parameters(e):
            raise TypeError(f"width of {e.name} is known in instances only")
        return 1 if e.width is None else e.width
    if isinstance(e, vt.Slice):
        return int(e.msb) - int(e.lsb) + 1
    if isinstance(e, vt.Pointer):
        return 1 if not getattr(e.var, "dims", None) else width(e.var)
    if isinstance(e, vt.Cat):
        return sum(width(v) for v in e.vars)
    if isinstance(e, vt.Repeat):
        return width(e.var) * int(e.times)
    if isinstance(e, vt.Cond):
        return max(width(e.true_value), width(e.false_value))
    if isinstance(e, _ONE_BIT):
        return 1
    if isinstance(e, vt._UnaryOperator):
        return width(e.right)
    if isinstance(e, vt._BinaryOperator):
        return max(width(e.left), width(e.right))
    raise TypeError(f"width of {type(e).__name__} is unknown")


def _by_parameters(e: Signal) -> bool:
    """Whether ``e`` is a variable whose width is an expression of the module's parameters."""
    return isinstance(e, vt._Variable) and not (e.width is None or isinstance(e.width, int))


def _fitted(value: Signal | int, target: Signal) -> Signal:
    """``value`` as wide as the variable ``target``. Where only instances know that width, ``value`` stays as it is:
    Verilator's lint looks at each instance."""
    if not _by_parameters(target):
        return resize(value, width(target))
    return Int(value) if isinstance(value, int) else value


def resize(e: Signal | int, w: int) -> Signal:
    """``e`` in exactly ``w`` bits: padded with zeros, or (variables and constants only) cut."""
    if isinstance(e, int):
        return const(e, w)
    if isinstance(e, vt.SystemTask) or isinstance(getattr(e, "left", None), vt.SystemTask):
        return e  # $countones and products take the width of their target
    have = width(e)
    if have == w:
        return e
    if have < w:
        return Cat(const(0, w - have), e)
    if isinstance(e, (vt._Variable, vt.Slice)):
        return bits(e, 0, w)
    raise ValueError(f"resize: an expression of {have} bits can't be cut to {w}; name it first")


def bits(v: Signal, low: int, count: int) -> Signal:
    """``count`` bits of a variable, or of a part of one, from bit ``low`` on."""
    if count == width(v):
        return v
    if isinstance(v, vt.Slice):
        return bits(v.var, int(v.lsb) + low, count)
    return v[low] if count == 1 else v[low : low + count]


def side_by_side(parts: Sequence[Signal]) -> Signal:
    """Signals in one, the first one low; at least one."""
    return Cat(*reversed(parts)) if len(parts) > 1 else parts[0]


def sign_extend(v: Signal, w: int) -> Signal:
    """Two's complement variable ``v`` in ``w`` bits."""
    have = width(v)
    if have == w:
        return v
    sign = bits(v, have - 1, 1)
    return Cat(sign if w - have == 1 else Repeat(sign, w - have), v)


def add(a: Signal | int, b: Signal | int, w: int) -> Signal:
    """a + b modulo 2^w."""
    return resize(a, w) + resize(b, w)


def sub(a: Signal | int, b: Signal | int, w: int) -> Signal:
    """a - b modulo 2^w."""
    return resize(a, w) - resize(b, w)


def eq(a: Signal, b: Signal | int) -> Signal:
    """1 where a equals b."""
    w = width(a) if isinstance(b, int) else max(width(a), width(b))
    return resize(a, w) == resize(b, w)


def product(a: Signal, b: Signal) -> Signal:
    """a * b of two's complement signals. The register that takes the product must have at least the bits of both."""
    return vt.SystemTask("signed", a) * vt.SystemTask("signed", b)


def nonzero(a: Signal) -> Signal:
    """1 where any bit of a is set."""
    return a if width(a) == 1 else vt.Uor(a)


def all_of(*terms: Signal) -> Signal:
    """AND of 1-bit terms."""
    return reduce(operator.and_, terms)


def any_of(*terms: Signal) -> Signal:
    """OR of terms of one width."""
    return reduce(operator.or_, terms)


def choose(condition: Signal, yes: Signal | int, no: Signal | int, w: int) -> Signal:
    """condition ? yes : no, in w bits."""
    return Mux(condition, resize(yes, w), resize(no, w))


def by_number(number: Signal, values: Sequence[Signal | int], w: int) -> Signal:
    """values[number], in w bits, by halves: as deep as the number is wide; 0 where there is none."""
    none = const(0, w)
    level = [none if isinstance(value, int) and not value else resize(value, w) for value in values]
    level += [none] * ((1 << width(number)) - len(values))
    for k in range(width(number)):
        turn = bits(number, k, 1)
        level = [even if even is odd else choose(turn, odd, even, w) for even, odd in zip(level[::2], level[1::2])]
    return level[0]


def last_repeated(number: Signal, values: Sequence[Signal]) -> Signal:
    """values[number], which are of one width, by halves as of `by_number`; the last one again where there is none."""
    return by_number(number, [*values, *[values[-1]] * ((1 << width(number)) - len(values))], width(values[0]))


def signed_at_least(a: Signal, b: Signal) -> Signal:
    """a >= b for two's complement variables of the same width: compare with the sign bits turned."""
    w = width(a)
    if w == 1:
        return vt.Unot(a) | b
    turn = lambda v: Cat(vt.Unot(bits(v, w - 1, 1)), bits(v, 0, w - 1))  # noqa: E731
    return turn(a) >= turn(b)


class Block:
    """One Verilog module under construction, with ``clk``, synchronous ``rst`` and its registers.

    Registers made with an ``init`` are control registers: reset sets them to it. Registers made with ``init=None``
    carry data that nobody looks at before it is written; they stand in an always block of their own, without reset, so
    that reset is no part of their clock enable.

    Parameters
    ----------
    name
        Name of the module.
    header
        Facts for the comment at the module's beginning; without them there is no comment (modules of test benches).
    clocked
        False: a combinational module without ``clk`` and ``rst``.
    reset
        False: a module without ``rst``, all of whose registers are made with ``init=None``.

    Attributes
    ----------
    m
        The Veriloggen module.
    clk, rst
        Clock and reset, None where the module has none.
    values
        Values of parameters that instances of this block have, by name; parameters that are not in it have their
        defaults.
    """

    def __init__(self, name: str, header: Header | None = None, *, clocked: bool = True, reset: bool = True):
        self.m = Module(name)
        self.header = header
        self.meanings: dict[str, str] = {}
        self.values: Mapping[str, int] = {}
        self.clk = self.input("clk") if clocked else None
        self.rst = self.input("rst") if clocked and reset else None
        self._control, self._data = (
            _BlockRegisters("Control registers, with reset."),
            _BlockRegisters("Data registers."),
        )
        self._localparams: dict[str, tuple[Signal, str]] = {}
        """By name: the constant, and its value and width as text."""
        self.m.block = self
        self.m.add_hook(self._make_registers)

    def _make_registers(self) -> None:
        """The two always blocks, once everything else is in the module: nothing can be added then."""
        self.m.hook.clear()  # a module that two others instantiate is asked twice
        for registers, reset in ((self._control, self.rst), (self._data, None)):
            if registers.updates:
                self.comment(registers.title)
                registers.always(self.m, self.clk, reset)

    def parameter(self, name: str, default: Size, means: str) -> Signal:
        """Parameter of the module, before all ports; ``means`` says in the header what it is.

        Parameters
        ----------
        name
            In capitals.
        default
            A number >= 0, or an expression of the parameters before this one: then instances need not set it.
        means
            Meaning of the parameter.
        """
        self._explain(name, means)
        return self.m.Parameter(name, default)

    def sized(self, **values: int) -> "Block":
        """This module with values for its parameters, for instances.

        Raises
        ------
        ValueError
            If the module has no such parameter.
        """
        known = self.m.global_constant
        for name in values:
            if name not in known:
                raise ValueError(f"{self.m.name}: a parameter must be one of {', '.join(known) or 'none'}, got {name}")
        block = copy(self)
        block.values = values
        return block

    @property
    def port_widths(self) -> dict[str, int]:
        """Bits of each port, in order, by the values of parameters."""
        values: dict[str, int] = {}
        for name, parameter in self.m.global_constant.items():
            values[name] = self.values[name] if name in self.values else value_of(parameter.value, values)
        ports = self.m.io_variable.items()
        return {name: 1 if port.width is None else value_of(port.width, values) for name, port in ports}

    def input(self, name: str, w: Size = 1, means: str = "") -> Signal:
        """Input port of ``w`` bits; ``means`` says in the header what it is."""
        self._explain(name, means)
        return self.m.Input(name, _range(w))

    def output(self, name: str, w: Size = 1, value: Signal | None = None, means: str = "") -> Signal:
        """Output port of ``w`` bits, a wire; ``means`` says in the header what it is."""
        self._explain(name, means)
        port = self.m.Output(name, _range(w))
        if value is not None:
            port.assign(value)
        return port

    def output_reg(self, name: str, w: Size = 1, init: "int | Signal | None" = 0, means: str = "") -> Signal:
        """Output port that is a register, see ``reg``; ``means`` says in the header what it is."""
        self._explain(name, means)
        return self.m.OutputReg(name, _range(w), initval=self._initial(name, w, init))

    def _explain(self, port: str, means: str) -> None:
        """Keep what ``port`` means."""
        self.meanings[port] = means or meaning_of(port)

    def wire(self, name: str, w: Size = 1, value: Signal | int | None = None) -> Signal:
        """Named wire; ``value`` of at most w bits."""
        wire = self.m.Wire(name, _range(w))
        if value is not None:
            wire.assign(_fitted(value, wire))
        return wire

    def reg(self, name: str, w: Size = 1, init: "int | Signal | None" = 0) -> Signal:
        """Register that reset sets to ``init``, a number or a constant of the module; None: data, without reset."""
        return self.m.Reg(name, _range(w), initval=self._initial(name, w, init))

    def _initial(self, name: str, w: Size, init: "int | Signal | None") -> Signal | None:
        """The constant that reset gives to a register, None for data."""
        if init is None:
            return None
        if self.rst is None:
            raise ValueError(f"{self.m.name}.{name}: a register with a first value needs a module with reset")
        if not isinstance(init, int):
            return init
        return const(init, w) if isinstance(w, int) else Int(init)

    def localparam(self, name: str, value: Size, w: Size | None = None, *, base: int = 10) -> Signal:
        """Named constant of ``w`` bits; the same name again gives the same one.

        Parameters
        ----------
        name
            In capitals.
        value
            From 0 to 2^w - 1; or an expression of the module's parameters.
        w
            Width in bits; None: a plain number, such as the width of something else.
        base
            16 where people expect hexadecimal digits: addresses, masks, magic numbers, digests.

        Raises
        ------
        ValueError
            If the value doesn't fit ``w`` bits, or the module has the name with another value or width.
        """
        what = f"{value} of {w} bits"
        if name in self._localparams:
            constant, known = self._localparams[name]
            if what != known:
                raise ValueError(f"{self.m.name}: localparam {name} must have one value, got {known} and {what}")
            return constant
        if isinstance(value, int) and not 0 <= value < 1 << w:
            raise ValueError(f"{self.m.name}: localparam {name} must fit {w} bits, got {value}")
        number = Int(value, width=w, base=base) if isinstance(value, int) else value
        constant = self.m.Localparam(name, number, _range(w))
        self._localparams[name] = constant, what
        self.m.items.insert(len(self._localparams) - 1, self.m.items.pop())  # before all that may use them
        return constant

    def comment(self, text: str) -> None:
        """A comment at this place of the module, on as many lines as it needs."""
        self.m.EmbeddedCode(section_comment(text))

    def on(self, condition: Signal | None, *targets: tuple[Signal, Signal | int]) -> None:
        """At the clock edge, if ``condition`` (None: always): register <= value, each. Later calls win."""
        for registers, data in ((self._control, False), (self._data, True)):
            values = [(target, _fitted(value, target)) for target, value in targets if _is_data(target) == data]
            if values:
                registers.update(condition, values)

    def memory(self, name: str, w: Size, depth: Size) -> Signal:
        """Array of registers; no reset."""
        return self.m.Reg(name, _range(w), depth)

    def clocked(self, *statements: Any) -> None:
        """An always block of its own, without reset: for memories."""
        self.m.Always(vt.Posedge(self.clk))(*statements)

    def instance(self, block: "Block", name: str, **ports: Signal) -> Instance:
        """Instance of ``block`` with clk and rst (``rst=`` may be given)."""
        ports = {"clk": self.clk, "rst": self.rst, **ports}
        known = block.m.io_variable
        return self.m.Instance(block.m, name, [*block.values.items()], [(p, ports[p]) for p in known])

    def header_lines(self) -> list[str]:
        """The header's lines; none where the module has no header."""
        if self.header is None:
            return []
        parameters = [(name, means) for name, means in self.meanings.items() if name in self.m.global_constant]
        ports = [(name, means) for name, means in self.meanings.items() if name in self.m.io_variable]
        return header_lines(self.m.name, self.header, ports, parameters)

    def modules(self, only: Iterable[str] | None = None) -> dict[str, str]:
        """The Verilog of this module and of all modules below it; with ``only``, of the modules named there.

        Returns
        -------
        dict
            Module name -> text with its header, this module first.
        """
        self.m.resolve_hook()  # as to_verilog would in a copy of all modules, which takes longer than writing them
        texts = {}
        modules = self.m.get_modules()
        for name in modules if only is None else only:
            block = modules[name].block
            texts[name] = "\n".join([*block.header_lines(), broken_lines(module_text(block.m)).lstrip("\n")])
        return texts


def _range(w: Size | None) -> Size | None:
    """The width as Veriloggen has it: None for a single bit."""
    return None if isinstance(w, int) and w == 1 else w


@dataclass
class _Update:
    """Values that registers are assigned at a clock edge."""

    condition: Signal | None
    """When; None: always."""
    values: list[tuple[Signal, Signal]]
    """Register, or a part of it, and its next value."""

    @property
    def registers(self) -> set[str]:
        """Names of the registers."""
        return {_register(target).name for target, _ in self.values}


@dataclass
class _BlockRegisters:
    """The registers of one always block."""

    title: str
    """The comment in front of the block."""
    updates: list[_Update] = field(default_factory=list)
    """Assignments, in order: later ones win."""

    def update(self, condition: Signal | None, values: list[tuple[Signal, Signal]]) -> None:
        """Assign ``values`` where ``condition`` holds, in one update with the latest one of the same condition, so that
        an always block asks a condition once. The values go to that update, or that update moves to the end, unless an
        update in between assigns one of the registers that would be assigned earlier, or later."""
        new = _Update(condition, values)
        between: set[str] = set()
        for k, update in reversed(list(enumerate(self.updates))):
            if str(update.condition) != str(condition):
                between |= update.registers
                continue
            if not between & new.registers:
                update.values += values
                return
            if not between & update.registers:
                self.updates.append(_Update(condition, self.updates.pop(k).values + values))
                return
            break
        self.updates.append(new)

    def always(self, m: Module, clock: Signal, reset: Signal | None) -> None:
        """The always block."""
        block = Seq(m, "registers", clock, reset, nohook=True)
        for update in self.updates:
            (block if update.condition is None else block.If(update.condition))(
                *[target(value) for target, value in update.values]
            )
        block.make_always()


def _register(target: Signal) -> Signal:
    """The register of which ``target`` is a part, or which it is."""
    while isinstance(target, (vt.Pointer, vt.Slice)):
        target = target.var
    return target


def _is_data(target: Signal) -> bool:
    """Whether a register, or the register of which this is a part, has no reset."""
    return _register(target).initval is None
