"""Contents of an .hwh, read as a test of its own would: without the code that wrote it."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field


@dataclass
class Handoff:
    """cells : instance -> VLNV.  links : target -> source.  drivers : sink -> driver.  ranges : interface -> base,
    bytes."""

    cells: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    registers: list[ET.Element] = field(default_factory=list)


def read(text: str) -> Handoff:
    """Read it, and check that both ends of every connection say the same."""
    out = Handoff()
    ends: dict[str, dict[bool, str]] = {}
    reverse: dict[str, set[str]] = {}
    for module in ET.fromstring(text).iter("MODULE"):
        name = module.get("INSTANCE", "")
        out.cells[name] = module.get("VLNV", "")
        out.parameters[name] = {p.get("NAME", ""): p.get("VALUE", "") for p in module.findall("PARAMETERS/PARAMETER")}
        for bus in module.iter("BUSINTERFACE"):
            master = bus.get("TYPE") in ("MASTER", "INITIATOR")
            assert master not in ends.setdefault(bus.get("BUSNAME", ""), {})
            ends[bus.get("BUSNAME", "")][master] = f"{name}/{bus.get('NAME')}"
        for port in module.iter("PORT"):
            path = f"{name}/{port.get('NAME')}"
            others = {f"{c.get('INSTANCE')}/{c.get('PORT')}" for c in port.iter("CONNECTION")}
            if port.get("DIR") == "I":
                (out.drivers[path],) = others
            else:
                reverse[path] = others
        for part in module.iter("MEMRANGE"):
            base, high = (int(part.get(key, ""), 16) for key in ("BASEVALUE", "HIGHVALUE"))
            out.ranges[f"{part.get('INSTANCE')}/{part.get('SLAVEBUSINTERFACE')}"] = base, high - base + 1
        out.registers += module.iter("REGISTER")
    out.links = {end[False]: end[True] for end in ends.values()}
    assert {sink: driver for driver, sinks in reverse.items() for sink in sinks} == out.drivers
    return out
