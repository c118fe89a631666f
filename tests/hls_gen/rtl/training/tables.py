"""The rows of a table that the hardware holds, worked out in numpy."""

import numpy as np

from bitloom.golden.discrete.machine.configuration import Configuration
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.table import CodeTable
from bitloom.hls_gen.design.training import ENTRY_BITS


def together(values, width: int) -> int:
    """Numbers side by side, the first one low."""
    return sum((int(value) & ((1 << width) - 1)) << width * k for k, value in enumerate(values))


def entries(table: CodeTable, codes=None) -> int:
    """Entries of a table by code, or in another order."""
    codes = range(len(table.values)) if codes is None else codes
    return together([int(table.places[c]) + 1 | int(table.signs[c] < 0) << 5 for c in codes], ENTRY_BITS)


def coded_as(machine: MachineParameters, configuration: Configuration, name: str, kind: int) -> dict[str, int]:
    """Inputs of an operand of that kind."""
    if not kind:
        return {f"{name}_coded": 0, f"{name}_entries": 0, f"{name}_mask": 0}
    table = configuration.tables[kind].table
    return {f"{name}_coded": 1, f"{name}_entries": entries(table), f"{name}_mask": len(table.values) - 1}


def conversion(
    machine: MachineParameters,
    table: CodeTable,
    chance: bool,
    prefix: str = "",
    *,
    pair: str = "bracket",
    zone: int = 2,
) -> dict[str, int]:
    """Inputs of a converter for that table; pair and zone are for one with a multiplier."""
    form = machine.form
    ranks = 1 << machine.code_bits
    order = np.argsort(table.real)
    values = form.words(table.real)[order]
    thresholds = (2 * values[1:] if chance and pair == "bracket" else values[1:] + values[:-1]).tolist()
    thresholds += [(1 << form.bits) - 1] * (ranks - 1 - len(thresholds))
    settings = {
        "thresholds": together(thresholds, form.bits + 1),
        "ranked": entries(table, order),
        "order": together(order, machine.code_bits),
        "mask": len(values) - 1,
        "chance": int(chance),
    }
    if machine.converter == "multiplying":
        settings |= {"pair": int(pair == "nearest"), "wide": int(zone == 2)}
    return {prefix + name: value for name, value in settings.items()}
