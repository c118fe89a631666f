"""Signals that go together from one module to another, each a port with a name, a width and a meaning of its own.

A bundle is a dataclass whose fields are annotated with a ``Meaning``: what the signal says and how wide it is,
said once for the reader of the Python code and for the ports. A field of width 0 is None, and has no port.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeVar

from bitloom.hls_gen.rtl.primitives.block import Block, Signal

from .spec import SequencerSpec

Own = TypeVar("Own", bound="Bundle")


class Meaning(NamedTuple):
    """Meaning and width of a signal of a bundle."""

    means: str
    """What the signal says."""
    bits: int | Callable[[SequencerSpec], int] = 1
    """Its width, or that by the sequencer; 0 where the sequencer has no such signal."""
    back: bool = False
    """Whether it is driven by the side that takes the bundle, like the ready of a stream."""


class BundlePort(NamedTuple):
    """A signal of a bundle in a sequencer that has it."""

    field: str
    name: str
    width: int
    part: Meaning


@dataclass(frozen=True)
class Bundle:
    """The signals of an interface, as seen inside the module that they belong to."""

    prefix: ClassVar[str] = ""
    """What the names of its ports begin with."""

    @classmethod
    def output(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Ports by which ``b`` gives the bundle; all but those that come back are to be assigned."""
        return cls(**{p.field: cls._port(b, p, p.part.back) for p in cls._ports(spec)})

    @classmethod
    def input(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Ports by which ``b`` takes the bundle; those that go back are to be assigned."""
        return cls(**{p.field: cls._port(b, p, not p.part.back) for p in cls._ports(spec)})

    @classmethod
    def wires(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Wires between two instances in ``b``."""
        return cls(**{p.field: b.wire(p.name, p.width) for p in cls._ports(spec)})

    @staticmethod
    def _port(b: Block, port: BundlePort, driven_outside: bool) -> Signal:
        """A port of ``b`` with its meaning."""
        if driven_outside:
            return b.input(port.name, port.width, means=port.part.means)
        return b.output(port.name, port.width, means=port.part.means)

    @classmethod
    def _ports(cls, spec: SequencerSpec) -> Iterator[BundlePort]:
        """The signals that the sequencer has."""
        for f in fields(cls):
            (part,) = f.type.__metadata__
            width = part.bits(spec) if callable(part.bits) else part.bits
            if width:
                yield BundlePort(f.name, cls.prefix + f.name, width, part)

    def ports(self) -> dict[str, Signal]:
        """Port map of an instance that gives or takes the bundle."""
        signals = {self.prefix + f.name: getattr(self, f.name) for f in fields(self)}
        return {name: signal for name, signal in signals.items() if signal is not None}

    def assign(self, **values: Signal | None) -> None:
        """Drive the signals named; a value for a signal that the sequencer doesn't have is not looked at."""
        for name, value in values.items():
            signal = getattr(self, name)
            if signal is not None:
                signal.assign(value)
