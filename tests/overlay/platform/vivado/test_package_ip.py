"""package_ip.tcl, run against stand-ins: the core has every register and field of the manifest; mistakes are caught."""

import pytest

from bitloom.overlay.platform.hwh import hwh_text

from . import hwh

ACCESS = {"RO": "read-only", "RW": "read-write", "RW1C": "read-write"}


def of_manifest(manifest):
    """Registers and fields in the packager's words."""
    registers = {}
    for register in manifest["registers"]:
        access = ACCESS[register["access"]]
        written = {"modified_write_value": "oneToClear"} if register["access"] == "RW1C" else {}
        fields = []
        for f in register["fields"]:
            place = {"name": f["name"], "bit_offset": str(f["lsb"]), "bit_width": str(f["width"])}
            fields.append({**place, "access": access, "description": f["description"], **written})
        registers[register["name"]] = (register["offset"], access, register["description"], fields)
    return registers


def test_the_hwh_has_the_same_registers_and_fields(sources):
    project = sources()
    registers = {}
    for register in hwh.read(hwh_text(project.design)).registers:
        own = properties(register)
        fields = []
        for field in register.iter("FIELD"):
            p = properties(field)
            written = {"modified_write_value": p["MODIFIED_WRITE_VALUE"]} if "MODIFIED_WRITE_VALUE" in p else {}
            place = {"name": field.get("NAME"), "bit_offset": p["BIT_OFFSET"], "bit_width": p["BIT_WIDTH"]}
            fields.append({**place, "access": p["ACCESS"], "description": p["DESCRIPTION"], **written})
        offset = int(own["ADDRESS_OFFSET"], 16)
        registers[register.get("NAME")] = offset, own["ACCESS"], own["DESCRIPTION"], fields
    assert registers == of_manifest(project.manifest)


def properties(element):
    """The PROPERTY elements directly inside one."""
    return {p.get("NAME"): p.get("VALUE") for p in element.findall("PROPERTY")}


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_interfaces(sources, stream_bits):
    project = sources(stream_bits=stream_bits)
    core = project.package().core
    assert core["vlnv"] == project.manifest["vlnv"]
    assert set(core["buses"]) == {"s_axi", "s_axis", "m_axis", "clk", "rst", "irq"}
    parameters = {name: bus["parameters"] for name, bus in core["buses"].items() if bus["parameters"]}
    assert parameters == {
        "s_axi": {"PROTOCOL": "AXI4LITE"},
        "clk": {"ASSOCIATED_BUSIF": "s_axi:s_axis:m_axis", "ASSOCIATED_RESET": "rst"},
        "rst": {"POLARITY": "ACTIVE_HIGH"},
        "irq": {"SENSITIVITY": "LEVEL_HIGH"},
    }
    assert core["ports"]["s_axis_tdata"] == ("in", stream_bits)
    assert core["parameters"] == {"DIGEST": project.manifest["digest"], "STREAM_BITS": str(stream_bits)}


def test_packaging_twice_replaces_the_first(sources):
    project = sources()
    assert project.package().core == project.package().core
