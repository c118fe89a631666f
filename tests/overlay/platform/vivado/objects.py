"""Code that all stand-ins share: commands with checked options, and objects with checked properties."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .catalogue import Rule
from .tcl import split


class VivadoError(Exception):
    """A command of the stand-in refuses: the script sees an error of Tcl."""


def anything(value: str) -> bool:
    """Every value is right."""
    return True


def read_only(value: str) -> bool:
    """No value can be set."""
    return False


@dataclass
class Thing:
    """An object of Vivado. rules : the properties that it has, lower case, and the values that they may have."""

    handle: str
    kind: str
    rules: dict[str, Rule]
    values: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> None:
        """set_property."""
        key = name.lower()
        if key not in self.rules:
            raise VivadoError(f"property {name} does not exist on {self.kind} {self.handle}")
        if not self.rules[key](value):
            raise VivadoError(f"{value!r} is no value for property {name} of {self.kind} {self.handle}")
        self.values[key] = value

    def get(self, name: str) -> str:
        """get_property."""
        if name.lower() not in self.rules:
            raise VivadoError(f"property {name} does not exist on {self.kind} {self.handle}")
        return self.values.get(name.lower(), "")


@dataclass(frozen=True)
class Command:
    """flags and valued : the options that a command knows. most : positional arguments, at least ``least``."""

    flags: frozenset[str]
    valued: frozenset[str]
    least: int
    most: int

    def parse(self, name: str, words: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
        """Options and positional arguments."""
        options: dict[str, str] = {}
        rest: list[str] = []
        given = iter(words)
        for w in given:
            if w in self.flags:
                options[w] = "1"
            elif w in self.valued:
                options[w] = next(given, "")
                if options[w] == "":
                    raise VivadoError(f"{name}: option {w} needs a value")
            elif w.startswith("-") and not w.lstrip("-").replace(".", "").isdigit():
                raise VivadoError(f"{name}: unknown option {w}")
            else:
                rest.append(w)
        if not self.least <= len(rest) <= self.most:
            raise VivadoError(f"{name}: takes {self.least} to {self.most} arguments, got {len(rest)}")
        return options, rest


def command(name: str, options: str = "", least: int = 0, most: int | None = None) -> Callable[[Any], Any]:
    """Marks a method as a command. options : "-flag -valued=" ...; the method gets them as a dictionary."""
    flags = frozenset(o for o in options.split() if not o.endswith("="))
    valued = frozenset(o.rstrip("=") for o in options.split() if o.endswith("="))
    spec = Command(flags, valued, least, least if most is None else most)

    def mark(method: Any) -> Any:
        method.command = (name, spec)
        return method

    return mark


class Stub:
    """Objects by handle, and the commands that all kinds of objects share."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.printed: list[str] = []

    @cached_property
    def commands(self) -> dict[str, tuple[Command, Any]]:
        """Name -> what it takes, and the bound method."""
        marked = [name for name in dir(type(self)) if hasattr(getattr(type(self), name), "command")]
        methods = [getattr(self, name) for name in marked]
        return {method.command[0]: (method.command[1], method) for method in methods}

    def dispatch(self, name: str, *words: str) -> tuple[int, str]:
        """Run a command; 1 and a message where it refuses."""
        spec, method = self.commands[name]
        try:
            options, rest = ({}, words) if name == "puts" else spec.parse(name, words)
            return 0, method(options, *rest) or ""
        except VivadoError as error:
            return 1, f"ERROR: {error}"

    def new(self, handle: str, kind: str, rules: Mapping[str, Rule], **values: object) -> Thing:
        """A new object; there must be none of its kind and name."""
        if handle in self.things:
            raise VivadoError(f"{kind} {handle} exists already")
        thing = Thing(handle, kind, dict(rules), {key: str(value) for key, value in values.items()})
        self.things[handle] = thing
        return thing

    def thing(self, handle: str, kind: str = "") -> Thing:
        """The object of that handle."""
        if handle not in self.things or (kind and self.things[handle].kind != kind):
            raise VivadoError(f"no {kind or 'object'} {handle!r}")
        return self.things[handle]

    @command("puts", least=1, most=3)
    def puts(self, options: dict[str, str], *words: str) -> None:
        self.printed.append(words[-1])

    @command("set_property", "-dict=", 1, 3)
    def set_property(self, options: dict[str, str], *words: str) -> None:
        if "-dict" in options:
            pairs = split(options["-dict"])
            if len(words) != 1 or len(pairs) % 2:
                raise VivadoError("set_property -dict: takes a list of names and values, and objects")
        elif len(words) == 3:
            pairs = list(words[:2])
        else:
            raise VivadoError("set_property: takes name, value and objects")
        handles = split(words[-1])
        if not handles:
            raise VivadoError(f"set_property {pairs[0]}: no objects")
        for handle in handles:
            for name, value in zip(pairs[::2], pairs[1::2]):
                self.set_thing(self.thing(handle), name, value)

    def set_thing(self, thing: Thing, name: str, value: str) -> None:
        """Set a property of one object."""
        thing.set(name, value)

    @command("get_property", "", 2)
    def get_property(self, options: dict[str, str], name: str, handle: str) -> str:
        return self.thing(handle).get(name)
