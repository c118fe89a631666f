"""The instances of modules in generated Verilog, with the values of their parameters."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bitloom.overlay.area.netlist import sized_name

_MODULE = re.compile(r"^module (\w+)\b.*?^endmodule", re.M | re.S)
_INSTANCE = re.compile(r"^  (\w+)(?: #\(([^;]*?)\))?\s+\w+ \($", re.M)
_VALUE = re.compile(r"\.(\w+)\((\w+)\)")


@dataclass(frozen=True)
class Instance:
    """A module with the values that an instance gives its parameters.

    Attributes
    ----------
    module
        Name of the module.
    values
        Name and value of each parameter that is given one.
    """

    module: str
    values: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """As areas have it."""
        return sized_name(self.module, dict(self.values))

    @property
    def verilog(self) -> str:
        """Module and parameters, as they stand in front of an instance's name."""
        given = ", ".join(f".{name}({value})" for name, value in self.values)
        return f"{self.module} #({given})" if given else self.module


def bodies(text: str) -> dict[str, str]:
    """The text of each module, by name."""
    return {body[1]: body[0] for body in _MODULE.finditer(text)}


def children(texts: Mapping[str, str], parent: Instance) -> Iterator[Instance]:
    """Instances in a module; names of the module's own parameters become their values."""
    own = dict(parent.values)
    for module, given in _INSTANCE.findall(texts[parent.module]):
        if module in texts:
            values = (
                (name, int(value) if value.isdigit() else own.get(value, 0)) for name, value in _VALUE.findall(given)
            )
            yield Instance(module, tuple(values))


def instances(text: str, top: str) -> Counter[Instance]:
    """How many instances of each module with the same values there are below ``top``, itself among them."""
    texts = bodies(text)
    counts: Counter[Instance] = Counter()

    def visit(one: Instance) -> None:
        counts[one] += 1
        for child in children(texts, one):
            visit(child)

    visit(Instance(top))
    return counts
