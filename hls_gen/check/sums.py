"""Proof that two modules give the same sums of bits: in the same cycle, for all inputs, whatever the number of lanes.

A popcount has one body for simulation and one for synthesis (hls_gen/rtl/array/popcount.py). A solver takes hours for
the equality of two such bodies of 64 lanes. Here each output becomes a linear form, and the forms are compared:

    an output of w bits = c_0 p_0 + c_1 p_1 + ... modulo 2^w      p: a function of input bits, c: an integer

The form begins as the output's own bits with coefficients 1, 2, 4, ... Wires and registers are then replaced by the
bits that they are made of, beginning with those of which no other wire or register is made. A wire may be

- a function of at most MOST_ATOMS bits. The weighted sum of the wire's bits must be linear in them, which is tried for
  all their values: 2 * (carry of a full adder) + (sum of a full adder) = x + y + z. Where the sum is not linear in the
  bits themselves, the latest of them is replaced by the bits that it is made of.
- ``a + b``, ``a - b`` or ``$countones(a)``, whose lost carries must be worth a multiple of 2^w.

A register moves what it is made of into the cycle before. All numbers are unsigned, and there is one clock. What is
not understood is refused.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from pyverilog.vparser import ast

from .findings import DesignError, Finding
from .scope import Scope
from .verilog import parse

CLOCK = "clk"
"""The clock of every register."""
MOST_ATOMS = 10
"""Bits whose values are tried at once."""
_BITWISE: dict[type, Callable[[int, int], int]] = {
    ast.And: lambda a, b: a & b,
    ast.Or: lambda a, b: a | b,
    ast.Xor: lambda a, b: a ^ b,
}


class Bit(NamedTuple):
    """A bit of a signal, some cycles before the output."""

    signal: str
    index: int
    cycles: int


class BitFunction(NamedTuple):
    """A function of bits."""

    atoms: tuple[Bit, ...]
    """The bits, each once, sorted."""
    table: tuple[int, ...]
    """Its values for 0...0, 0...1, ..., 1...1, the first atom's bit the highest."""


Form = dict[BitFunction, int]
"""Coefficient of each function of input bits; the constant is that of the function of no bits."""


@lru_cache(maxsize=128)  # designs share modules
def check_same_sums(first: str, second: str) -> None:
    """Prove that two modules with the same ports give the same outputs.

    Parameters
    ----------
    first, second
        Texts of a module each.

    Raises
    ------
    DesignError
        The ports or an output differ, or a text holds what is not understood.
    """
    module = _SumModule(first)
    twin = _SumModule(second)
    if module.ports != twin.ports:
        raise DesignError([Finding(module.scope.name, "", f"ports must be {module.ports}, got {twin.ports}")])
    for name, (port, _) in module.ports.items():
        if port == "output" and module.form(name) != twin.form(name):
            raise DesignError([Finding(module.scope.name, name, "must be the same sum in both texts, got another one")])


class _SumModule:
    """A module of wires and registers, each assigned as a whole, once.

    Attributes
    ----------
    scope : Scope
        Its names.
    ports : dict
        Name -> "input" or "output", and width.
    """

    def __init__(self, text: str):
        (parsed,) = parse(text).values()
        self.scope = Scope(parsed.node)
        if self.scope.findings:
            raise DesignError(self.scope.findings)
        self.ports = {s.name: (s.port, s.width) for s in self.scope.signals.values() if s.port}
        self._right: dict[str, tuple[ast.Node, int]] = {}  # signal -> what it is, and cycles before
        for signal in self.scope.signals.values():
            if signal.signed:
                raise self._refuse(signal.name, "a signal must be unsigned")
        for item in parsed.node.items:
            if isinstance(item, ast.Always):
                for statement in self._registers(item):
                    self._define(statement, 1)
            elif isinstance(item, (ast.Assign, ast.Decl)):
                for part in getattr(item, "list", (item,)):
                    if isinstance(part, ast.Assign):
                        self._define(part, 0)
            else:
                rule = "an item must be a declaration, assign or always"
                raise self._refuse("", f"{rule}, got {type(item).__name__}")
        self._rank = cache(self._rank_of)

    def form(self, output: str) -> Form:
        """The linear form of an output, modulo 2^its width."""
        w = self.scope.signals[output].width
        form: Form = {}
        bits = {Bit(output, k, 0): 1 << k for k in range(w)}
        while bits:
            latest = max(bits, key=lambda bit: (self._rank(bit.signal), bit.signal, bit.cycles))
            signal = (latest.signal, latest.cycles)
            chosen = {bit: bits.pop(bit) for bit in [*bits] if (bit.signal, bit.cycles) == signal}
            for atom, coefficient in self._replaced(*signal, chosen, 1 << w):
                if isinstance(atom, Bit) and self._rank(atom.signal):
                    bits[atom] = (bits.get(atom, 0) + coefficient) % (1 << w)
                else:
                    function = _function(atom) if isinstance(atom, Bit) else atom
                    form[function] = (form.get(function, 0) + coefficient) % (1 << w)
        return {function: coefficient for function, coefficient in form.items() if coefficient}

    def _refuse(self, signal: str, rule: str) -> DesignError:
        """The error of what is not understood."""
        return DesignError([Finding(self.scope.name, signal, f"proof of sums: {rule}")])

    def _registers(self, always: ast.Always) -> list[ast.NonblockingSubstitution]:
        """The assignments of an always block, each of which is a register of the one clock."""
        events = [(s.type, getattr(s.sig, "name", "")) for s in always.sens_list.list]
        statements = getattr(always.statement, "statements", (always.statement,))
        kinds = {type(statement) for statement in statements}
        if events != [("posedge", CLOCK)] or kinds != {ast.NonblockingSubstitution}:
            raise self._refuse("", f"a register must be assigned by <= at @(posedge {CLOCK})")
        return [*statements]

    def _define(self, item: ast.Node, cycles: int) -> None:
        """Take an assignment."""
        left = getattr(getattr(item, "left", None), "var", None)
        if not isinstance(left, ast.Identifier) or left.name in self._right:
            raise self._refuse(str(getattr(left, "name", "")), "a signal must be assigned as a whole, once")
        self._right[left.name] = (item.right.var, cycles)

    def _rank_of(self, signal: str) -> int:
        """0 for an input; else one more than the highest rank of what the signal is made of."""
        if signal not in self._right:
            if self.ports.get(signal, ("",))[0] != "input":
                raise self._refuse(signal, "a signal must be an input or be assigned")
            return 0
        return 1 + max((self._rank(name) for name in _names(self._right[signal][0])), default=0)

    def _replaced(
        self, signal: str, cycles: int, bits: dict[Bit, int], modulus: int
    ) -> Iterator[tuple[Bit | BitFunction, int]]:
        """Bits and functions, each with a coefficient, that take the place of ``bits`` of one signal in a sum."""
        right, before = self._right[signal]
        width = self.scope.signals[signal].width
        weights = [bits.get(Bit(signal, k, cycles), 0) for k in range(width)]
        cycles += before
        if isinstance(right, (ast.Plus, ast.Minus, ast.SystemCall)):
            yield from self._sum(signal, right, cycles, weights, modulus)
            return
        word = self._assigned(signal, right, cycles)
        parts = [(weight, word[k] if k < len(word) else 0) for k, weight in enumerate(weights) if weight]
        for weight, part in parts:
            if isinstance(part, Bit):
                yield part, weight
            elif isinstance(part, int):
                yield BitFunction((), (1,)), weight * part
        whole = [(weight, part) for weight, part in parts if isinstance(part, tuple) and not isinstance(part, Bit)]
        inputs = [(weight, part) for weight, part in whole if not any(self._rank(a.signal) for a in _atoms(part))]
        for weight, part in inputs:
            yield _function(part), weight
        rest = [weighted for weighted in whole if weighted not in inputs]
        if rest:
            yield from self._linear(signal, rest, modulus)

    def _linear(
        self, signal: str, parts: list[tuple[int, "_Tree"]], modulus: int
    ) -> Iterator[tuple[Bit | BitFunction, int]]:
        """The weighted sum of functions of bits, as one that is linear in bits."""
        while True:
            atoms = sorted(set().union(*(_atoms(part) for _, part in parts)))
            if len(atoms) > MOST_ATOMS:
                raise self._refuse(signal, f"a function must be of at most {MOST_ATOMS} bits, got {len(atoms)}")
            constant, *steps = self._slopes(parts, atoms)
            errors = (
                constant + sum(step for step, value in zip(steps, values) if value) - _weighed(parts, atoms, values)
                for values in product((0, 1), repeat=len(atoms))
            )
            if all(error % modulus == 0 for error in errors):
                yield BitFunction((), (1,)), constant
                yield from zip(atoms, steps)
                return
            latest = max(atoms, key=lambda bit: self._rank(bit.signal))
            inside = self._definition(latest)
            if inside is None:
                raise self._refuse(signal, "its weighted sum must be linear in the bits that it is made of")
            parts = [(weight, _substituted(part, latest, inside)) for weight, part in parts]

    @staticmethod
    def _slopes(parts: list[tuple[int, "_Tree"]], atoms: list[Bit]) -> list[int]:
        """The sum where all bits are 0, and what each bit alone adds to it."""
        zeros = [0] * len(atoms)
        constant = _weighed(parts, atoms, zeros)
        each = [[int(k == at) for k in range(len(atoms))] for at in range(len(atoms))]
        return [constant, *(_weighed(parts, atoms, values) - constant for values in each)]

    def _definition(self, bit: Bit) -> "_Tree | None":
        """The bit, function or constant that a bit equals; None for an input, or a bit of a sum of words."""
        if bit.signal not in self._right:
            return None
        right, before = self._right[bit.signal]
        if isinstance(right, (ast.Plus, ast.Minus, ast.SystemCall)):
            return None
        word = self._assigned(bit.signal, right, bit.cycles + before)
        return word[bit.index] if bit.index < len(word) else 0

    def _source(self, part: "_Tree") -> "_Tree":
        """The bit of which a bit is a copy."""
        while isinstance(part, Bit):
            inside = self._definition(part)
            if not isinstance(inside, (int, Bit)):
                break
            part = inside
        return part

    def _sum(
        self, signal: str, right: ast.Node, cycles: int, weights: list[int], modulus: int
    ) -> Iterator[tuple[Bit | BitFunction, int]]:
        """A sum of words, whose bits have the weights times 1, 2, 4, ...; or, where the lowest bits of both words are
        one bit and that of the sum is not used, half of it: the lowest bits are a carry in."""
        width = len(weights)
        addends = [*self._addends(right, cycles)]
        unit = weights[0]
        low = 0
        if unit == 0 and width > 1 and any(weights):
            unit = weights[1]
            low = 1
            carry = {self._source(word[0]) for _, word in addends}
            if len(addends) != 2 or len(carry) > 1 or any(sign < 0 for sign, _ in addends):
                raise self._refuse(signal, "a sum without its lowest bit must have one carry in")
            addends = [(1, [carry.pop()]), *((sign, word[1:]) for sign, word in addends)]
        if any((unit << k - low) % modulus != weights[k] for k in range(low, width)):
            raise self._refuse(signal, "the bits of a sum must be used as one number")
        most = sum((1 << len(word)) - 1 for _, word in addends)
        fits = most < 1 << width - low and all(sign > 0 for sign, _ in addends)
        if (unit << width - low) % modulus and not fits:
            raise self._refuse(signal, "carries that a sum loses must be worth a multiple of the output's range")
        for sign, word in addends:
            for k, part in enumerate(word):
                if isinstance(part, int):
                    yield BitFunction((), (1,)), sign * part * unit << k
                elif isinstance(part, Bit):
                    yield part, sign * unit << k
                else:
                    raise self._refuse(signal, "the words of a sum must be of bits and constants")

    def _addends(self, e: ast.Node, cycles: int, sign: int = 1) -> Iterator[tuple[int, list["_Tree"]]]:
        """Signs and words of a sum; the bits that $countones counts are words of a bit."""
        if isinstance(e, (ast.Plus, ast.Minus)):
            yield from self._addends(e.left, cycles, sign)
            yield from self._addends(e.right, cycles, sign if isinstance(e, ast.Plus) else -sign)
        elif isinstance(e, ast.SystemCall) and e.syscall == "countones":
            yield from ((sign, [bit]) for bit in self._word(e.args[0], cycles))
        else:
            yield sign, self._word(e, cycles)

    def _assigned(self, signal: str, right: ast.Node, cycles: int) -> list["_Tree"]:
        """The bits that a signal is made of; where there are fewer, the bits above are 0.

        Verilog widens what operators work on, not their result: each bit above one of ~ is 1.
        """
        word = self._word(right, cycles)
        width = self.scope.signals[signal].width
        if len(word) < width and (isinstance(right, ast.Unot) or type(right) in _BITWISE):
            rule = f"an operator's result must be as wide as the signal, {width} bits"
            raise self._refuse(signal, f"{rule}, got {len(word)}")
        return word

    def _word(self, e: ast.Node, cycles: int) -> list["_Tree"]:
        """The bits of an expression, the lowest first."""
        if isinstance(e, ast.Concat):
            return [bit for part in reversed(e.list) for bit in self._word(part, cycles)]
        if isinstance(e, ast.Unot):
            return [("not", bit) for bit in self._word(e.right, cycles)]
        if type(e) in _BITWISE:
            left = self._word(e.left, cycles)
            right = self._word(e.right, cycles)
            if len(left) == len(right):
                return [(type(e), a, b) for a, b in zip(left, right)]
        width = self.scope.width(e)
        if width is not None and isinstance(e, ast.IntConst):
            if "s" in e.value.lower():
                raise self._refuse("", f"a constant must be unsigned, got {e.value}")
            value = self.scope.const(e)
            return [value >> k & 1 for k in range(width)]
        if width is not None and isinstance(e, (ast.Identifier, ast.Pointer, ast.Partselect)):
            bounds = {ast.Pointer: "ptr", ast.Partselect: "lsb"}.get(type(e))
            low = 0 if bounds is None else self.scope.const(getattr(e, bounds))
            name = e.name if bounds is None else getattr(e.var, "name", None)
            if low is not None and name in self.scope.signals:
                top = self.scope.signals[name].width - 1
                if low + width - 1 > top:
                    raise self._refuse(name, f"a bit must be one of 0 to {top}, got {low + width - 1}")
                return [Bit(name, low + k, cycles) for k in range(width)]
        raise self._refuse("", f"an expression must be of bits, constants, ~ & | ^ and {{}}, got {type(e).__name__}")


_Tree = int | Bit | tuple
"""A constant, a bit, ("not", tree), or (kind of operator, tree, tree)."""


def _names(e: ast.Node) -> Iterator[str]:
    """Names in an expression."""
    if isinstance(e, ast.Identifier):
        yield e.name
    for child in e.children():
        yield from _names(child)


def _atoms(tree: _Tree) -> set[Bit]:
    """Bits of a function."""
    if isinstance(tree, Bit):
        return {tree}
    return set() if isinstance(tree, int) else set().union(*(_atoms(part) for part in tree[1:]))


def _substituted(tree: _Tree, bit: Bit, inside: _Tree) -> _Tree:
    """A function with another one in place of a bit."""
    if tree == bit:
        return inside
    return tree if isinstance(tree, (int, Bit)) else (tree[0], *(_substituted(part, bit, inside) for part in tree[1:]))


def _value(tree: _Tree, values: dict[Bit, int]) -> int:
    """A function's value for these values of bits."""
    if isinstance(tree, Bit):
        return values[tree]
    if isinstance(tree, int):
        return tree
    if tree[0] == "not":
        return 1 - _value(tree[1], values)
    return _BITWISE[tree[0]](_value(tree[1], values), _value(tree[2], values))


def _weighed(parts: list[tuple[int, _Tree]], atoms: list[Bit], values: tuple[int, ...] | list[int]) -> int:
    """The weighted sum of functions for these values of the bits."""
    by_bit = dict(zip(atoms, values))
    return sum(weight * _value(part, by_bit) for weight, part in parts)


def _function(tree: _Tree) -> BitFunction:
    """A function by its values."""
    atoms = sorted(_atoms(tree))
    table = (_value(tree, dict(zip(atoms, values))) for values in product((0, 1), repeat=len(atoms)))
    return BitFunction(tuple(atoms), tuple(table))
