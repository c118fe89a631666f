"""Parts of an NPU: what each has in common.

An NPU (npu.py) is put together of eight parts: former, sequencer, array, results, pool unit, stores, ports and loader.
A part checks its own fields when it is made; the NPU checks what two parts must agree on. Some fields are chosen by a
person or by the search, others are sizes: as large as the networks need (hls_gen/compiler/sizing.py).

A field says once, where it is declared, what must hold for its value:

    pfp: int = number(8)                                         chosen, >= 1, 8 by default
    words: int = capacity(256, power=True, name="pool_words")    a size, a power of two, in files "pool_words"

The check of the part, the names in messages and files (flat.py), what is left out of files, how needs of layers are
put together and the least size (hls_gen/compiler/needs.py, fitted.py) all follow from that.
"""

from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from bitloom.golden.integers import make_fields_plain
from bitloom.golden.names import shown

from .rules import require


@dataclass(frozen=True, kw_only=True)
class Number:
    """The rule for a number of a part."""

    least: int = 1
    """Smallest value, >= 0."""
    most: int | None = None
    """Largest value; None: there is none, or it follows from other fields, and the part checks it."""
    power: bool = False
    """Whether it is a power of two."""
    or_zero: bool = False
    """Whether it may also be 0."""
    sized: bool = False
    """Whether it follows from the networks: a capacity."""
    added: bool = False
    """Of a capacity: whether layers lie in it one behind the other, so that they need the sum, else the largest."""

    def of_all(self, needs: Iterable[int]) -> int:
        """The need of several layers together, of each layer's need."""
        return sum(needs) if self.added else max(needs)

    @property
    def rule(self) -> str:
        """The rule in words."""
        ends = f">= {self.least}" if self.most is None else f"{self.least}..{self.most}"
        if self.power:
            return f"a power of two {ends}"
        if self.or_zero:
            return f"0 or {ends}"
        return ends if self.most is not None else f"an integer {ends}"

    def check(self, name: str, value: Any) -> None:
        """ValueError, which calls the value ``name``, unless it is such a number."""
        whole = type(value) is int
        inside = whole and self.least <= value and (self.most is None or value <= self.most)
        ok = (inside and not (self.power and value & (value - 1))) or (whole and self.or_zero and value == 0)
        require(ok, f"{name} must be {self.rule}", shown(value))


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The rule for a value of a part that is one of a few words, or a tuple of some of them."""

    words: tuple[str, ...]
    """The words."""
    several: bool = False
    """Whether it is a tuple of words, in this order."""
    empty: bool = False
    """Whether that tuple may be empty."""

    def check(self, name: str, value: Any) -> None:
        """ValueError, which calls the value ``name``, unless it is such a value."""
        listed = ", ".join(self.words)
        if self.several:
            ok = isinstance(value, tuple) and tuple(word for word in self.words if word in value) == value
            require(ok and (self.empty or bool(value)), f"{name} must be some of {listed}, in this order", shown(value))
        else:
            require(value in self.words, f"{name} must be one of {listed}", shown(value))


@dataclass(frozen=True, kw_only=True)
class NpuPart:
    """A part of an NPU. Checked when it is made; ValueError ``npu: field, rule, value``."""

    engine: ClassVar[str] = ""
    """The engine of the NPUs that may have it, "binary" or "integer"; "": either."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for item in fields(self):
            value = getattr(self, item.name)
            rule = rule_of(item)
            if rule:
                rule.check(name_of(item), value)
            if type(item.default) is bool:
                require(isinstance(value, bool), f"{name_of(item)} must be True or False", shown(value))


def value(
    default: Any = MISSING,
    *,
    rule: Number | Choices | None = None,
    name: str = "",
    option: str = "",
    rare: bool = False,
    where: str = "",
    means: str = "",
) -> Any:
    """A field of a part.

    Parameters
    ----------
    default
        Value where none is given; without it one must be given.
    rule
        Rule that must hold for the value.
    name
        Name of the value on the command line, in files and in messages; by default the field's.
    option
        Name on the command line, if that is another one.
    rare
        Whether files have the value only where it isn't the default.
    where
        Name of a property of `Npu` that is true where the value means something: "loops_maps". In other NPUs a feature
        that is off by default must be off. By default it means something wherever its part is.
    means
        A sentence that says what is chosen by the value: for the command line, schema and pages.
    """
    said = {"rule": rule, "name": name, "option": option, "rare": rare, "where": where, "means": means}
    return field(default=default, metadata=said)


def choice(default: str | tuple[str, ...], words: tuple[str, ...], **more: Any) -> Any:
    """A field of a part that is one of a few words, or some of them, in their order, where the default is a tuple; none
    at all if that is empty. Other parameters as of `value`."""
    several = isinstance(default, tuple)
    return value(default, rule=Choices(words=words, several=several, empty=not default), **more)


def number(
    default: Any = MISSING,
    *,
    least: int | None = None,
    most: int | None = None,
    power: bool = False,
    or_zero: bool = False,
    sized: bool = False,
    added: bool = False,
    **more: Any,
) -> Any:
    """A field of a part that is a number; parameters as of `Number` and `value`. It is 1 at the least where nothing
    else is said, a power of two 2."""
    least = (2 if power else 1) if least is None else least
    rule = Number(least=least, most=most, power=power, or_zero=or_zero, sized=sized, added=added)
    return value(default, rule=rule, **more)


def capacity(default: Any = MISSING, **more: Any) -> Any:
    """A field of a part that is a capacity: no person chooses it, it follows from the networks. Parameters as of
    `number`."""
    return number(default, sized=True, **more)


def name_of(item: "Field[Any]") -> str:
    """The name of a field's value on the command line, in files and in messages."""
    return item.metadata.get("name") or item.name


def rule_of(item: "Field[Any]") -> Number | Choices | None:
    """The rule for the value of a field; None where the part alone says it."""
    return item.metadata.get("rule")


RAM_STYLES = ("auto", "block", "distributed")
"""Kinds of RAM that synthesis is asked to make: either one, block RAM, LUT RAM."""
ONE_PORT = "one_port"
"""LUT RAM in which a row is written and read by the same address, so never both in a cycle. Memories that suit it get
it; it is no value of a folding."""

P = TypeVar("P")


def present(part: P | None) -> P:
    """The part, for callers that are only asked where it is there.

    Raises
    ------
    AssertionError
        It isn't.
    """
    assert part is not None, "a part that this NPU lacks"
    return part
