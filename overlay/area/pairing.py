"""LUTs as a device counts them: a LUT of six inputs holds two functions that have at most five inputs together.

    LUT3 (a, b, c) and LUT4 (b, c, d, e) --> one LUT6_2 (a, b, c, d, e), outputs O6 and O5

Which functions share a LUT a tool decides when it places them. Here their inputs alone decide: a function goes with the
one that shares most inputs with it, and alone where none shares any. The LUT at input S of a carry chain has the place
of its CARRY4, where output O5 leads to DI: it goes with the function at DI of the same bit, or alone.

It is an estimate. For three cores of which it is published what Vivado made of them, it is 4 % below to 6 % above; LUTs
with one function each are 14 to 19 % above (``python -m tests.area_fit.pairing``).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .netlist import Resources, count, resources

MOST_INPUTS = 5
"""Inputs of two functions in one LUT."""
MOST_READERS = 400
"""Functions at a wire that are looked at: of a wire with more readers the first ones."""


def with_pairs(module: Mapping[str, Any]) -> Resources:
    """Resources of a module of the netlist without those of modules in it, its LUTs in pairs, too."""
    plain = resources(count(module))
    return replace(plain, pairs=plain.lut - paired_luts(module))


def paired_luts(module: Mapping[str, Any]) -> int:
    """LUTs of logic of a module of the netlist without those of modules in it; two functions in one LUT count once."""
    inputs: dict[str, frozenset[int]] = {}
    makers: dict[int, str] = {}
    for name, cell in module["cells"].items():
        if re.fullmatch(r"LUT[1-6]|INV", cell["type"]):
            wires = [wire for port, wires in cell["connections"].items() if port != "O" for wire in wires]
            inputs[name] = frozenset(wire for wire in wires if isinstance(wire, int))
            makers[cell["connections"]["O"][0]] = name
    pairs = 0
    alone = {name: read for name, read in inputs.items() if len(read) <= MOST_INPUTS}
    for propagate, generate in _carried(module, makers):
        fits = generate in alone and len(inputs[propagate] | inputs[generate]) <= MOST_INPUTS
        if propagate in alone and propagate != generate and fits:
            pairs += 1
            del alone[generate]
        alone.pop(propagate, None)
    return len(inputs) - pairs - _pairs(alone)


def _carried(module: Mapping[str, Any], makers: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """For each bit of a carry chain the functions at S and at DI; "" where there is none at DI."""
    for cell in module["cells"].values():
        if cell["type"] == "CARRY4":
            for at_s, at_di in zip(cell["connections"]["S"], cell["connections"]["DI"]):
                if at_s in makers:
                    yield makers[at_s], makers.get(at_di, "")


def _pairs(alone: Mapping[str, frozenset[int]]) -> int:
    """Pairs of functions that share inputs, those with most inputs first."""
    readers: dict[int, list[str]] = defaultdict(list)
    for name, read in alone.items():
        for wire in read:
            readers[wire].append(name)
    paired: set[str] = set()
    for name in sorted(alone, key=lambda name: -len(alone[name])):
        if name in paired:
            continue
        read = alone[name]
        near = {other for wire in read for other in readers[wire][:MOST_READERS]} - paired - {name}
        fitting = [other for other in near if len(read | alone[other]) <= MOST_INPUTS]
        if fitting:
            paired |= {name, max(fitting, key=lambda other: (len(read & alone[other]), len(alone[other]), other))}
    return len(paired) // 2
