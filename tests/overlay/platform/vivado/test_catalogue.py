"""The stand-in's IP cores against .hwh files that Vivado wrote: those that pynqmetadata brings for its own tests."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from .catalogue import CATALOGUE

MODES = {"master": ("MASTER", "INITIATOR"), "slave": ("SLAVE", "TARGET")}


def modules() -> list[ET.Element]:
    pynqmetadata = pytest.importorskip("pynqmetadata")
    folder = Path(pynqmetadata.__file__).parent / "tests" / "hwhs"
    if not folder.is_dir():
        pytest.skip("this pynqmetadata has no .hwh files")
    cores = [module for path in sorted(folder.glob("*.hwh")) for module in ET.parse(path).getroot().iter("MODULE")]
    return [module for module in cores if module.get("MODTYPE") in {vlnv.split(":")[2] for vlnv in CATALOGUE}]


def test_names_are_vivados():
    seen = set()
    for module in modules():
        name = module.get("MODTYPE")
        core = next(core for vlnv, core in CATALOGUE.items() if vlnv.split(":")[2] == name)
        seen.add(name)
        values = {p.get("NAME"): p.get("VALUE") for p in module.findall("PARAMETERS/PARAMETER")}
        unknown = set(core.parameters) - set(values)
        assert not unknown, f"{name}: Vivado's has no {unknown}"
        for parameter, (_, rule) in core.parameters.items():
            assert rule(values[parameter]), f"{name}: {parameter} {values[parameter]}"
        ports = {p.get("NAME"): p for p in module.findall("PORTS/PORT")}
        for pin in core.pins(values):
            assert pin.name in ports, f"{name}: Vivado's has no pin {pin.name}"
            assert ports[pin.name].get("DIR") == pin.direction
            expected = {"clk": "clk", "rst": "rst", "rst_high": "rst", "interrupt": "INTERRUPT", "data": "undef"}
            assert ports[pin.name].get("SIGIS") == expected[pin.kind]
        clocks = {p.get("NAME") for p in ports.values() if p.get("DIR") == "I" and p.get("SIGIS") == "clk"}
        assert clocks <= OTHER_CLOCKS | {pin.name for pin in core.pins(values)}, f"{name}: clocks {clocks}"
        buses = {b.get("NAME"): b for b in module.findall("BUSINTERFACES/BUSINTERFACE")}
        for bus in core.buses(values):
            assert bus.name in buses, f"{name}: Vivado's has no interface {bus.name}"
            assert buses[bus.name].get("TYPE") in MODES[bus.mode]
            assert buses[bus.name].get("VLNV").split(":")[2] in (bus.kind, f"display_processing_system7:{bus.kind}")
    assert {"axi_dma", "axi_interconnect", "proc_sys_reset", "processing_system7", "zynq_ultra_ps_e"} <= seen


OTHER_CLOCKS = {"saxihp2_fpd_aclk"}
"""Of ports that our designs don't use and those in the files do."""
