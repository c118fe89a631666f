"""Signals that go together from one module to another, each a port with a name, a width and a meaning of its own.

A bundle is a dataclass whose fields are annotated with a ``Meaning``: what the signal says and how wide it is,
said once for the reader of the Python code and for the ports. A field of width 0 is None, and has no port. A field may
be a bundle itself; the names of its ports then begin with the outer bundle's prefix.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from typing import ClassVar, NamedTuple, TypeVar

from bitloom.hls_gen.rtl.primitives.block import Block, Signal

from .spec import SequencerSpec

Own = TypeVar("Own", bound="Bundle")


class Meaning(NamedTuple):
    """Meaning and width of a signal of a bundle."""

    means: str | Callable[[SequencerSpec], str]
    """The meaning, or a function that gives it for a sequencer."""
    bits: int | Callable[[SequencerSpec], int] = 1
    """Its width, or that by the sequencer; 0 where the sequencer has no such signal."""
    back: bool = False
    """Whether it is driven by the side that takes the bundle, like the ready of a stream."""


class BundlePort(NamedTuple):
    """A port of a bundle in a sequencer that has it."""

    name: str
    width: int
    means: str
    back: bool

    def signal(self, b: Block, driven_outside: bool) -> Signal:
        """The port of ``b``, an input if it is driven outside, with its meaning."""
        make = b.input if driven_outside else b.output
        return make(self.name, self.width, means=self.means)


@dataclass(frozen=True)
class Bundle:
    """The signals of an interface, as seen inside the module that they belong to."""

    prefix: ClassVar[str] = ""
    """Beginning of the names of its ports."""
    of_row: ClassVar[bool] = False
    """Whether a signal is as wide as the field of its name in the layer's row, whatever its meaning says."""

    @classmethod
    def output(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Ports by which ``b`` gives the bundle; all but those that come back are to be assigned."""
        return cls.of({port.name: port.signal(b, port.back) for port in cls.port_list(spec)})

    @classmethod
    def input(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Ports by which ``b`` takes the bundle; those that go back are to be assigned."""
        return cls.of({port.name: port.signal(b, not port.back) for port in cls.port_list(spec)})

    @classmethod
    def wires(cls: type[Own], b: Block, spec: SequencerSpec) -> Own:
        """Wires between two instances in ``b``."""
        return cls.of({port.name: b.wire(port.name, port.width) for port in cls.port_list(spec)})

    @classmethod
    def of(cls: type[Own], signals: Mapping[str, Signal], prefix: str = "") -> Own:
        """The bundle of signals by the names of its ports, such as what is connected to an instance that gives it.

        Parameters
        ----------
        signals
            The signals, and any others.
        prefix
            Further beginning of the names: that of the bundle that contains this one.
        """
        prefix += cls.prefix
        return cls(
            **{
                f.name: signals.get(prefix + f.name) if _inner(f) is None else _inner(f).of(signals, prefix)
                for f in fields(cls)
            }
        )

    @classmethod
    def port_list(cls, spec: SequencerSpec, prefix: str = "") -> list[BundlePort]:
        """The ports that a sequencer has; ``prefix`` as in `of`."""
        prefix += cls.prefix
        ports = list[BundlePort]()
        for f in fields(cls):
            inner = _inner(f)
            if inner is not None:
                ports += inner.port_list(spec, prefix)
                continue
            (part,) = f.type.__metadata__
            bits = spec.layer_bits(f.name) if cls.of_row else part.bits
            width = bits(spec) if callable(bits) else bits
            if width:
                means = part.means(spec) if callable(part.means) else part.means
                ports.append(BundlePort(prefix + f.name, width, means, part.back))
        return ports

    def ports(self) -> dict[str, Signal]:
        """Port map of an instance that gives or takes the bundle."""
        ports = {}
        for f in fields(self):
            signal = getattr(self, f.name)
            signals = {f.name: signal} if _inner(f) is None else signal.ports()
            ports |= {self.prefix + name: port for name, port in signals.items() if port is not None}
        return ports

    def assign(self, **values: Signal | None) -> None:
        """Drive the signals named; a value for a signal that the sequencer doesn't have is not looked at."""
        for name, value in values.items():
            signal = getattr(self, name)
            if signal is not None:
                signal.assign(value)


def _inner(field: Field) -> type[Bundle] | None:
    """The bundle that a field of a bundle is; None for a signal."""
    return field.type if isinstance(field.type, type) else None
