"""package_ip.tcl, run against stand-ins: the core has every register and field of the manifest; mistakes are caught."""

import re

import pytest

from bitloom.overlay.platform.hwh import hwh_text

from . import hwh
from .tcl import TclError

ACCESS = {"RO": "read-only", "RW": "read-write", "RW1C": "read-write"}


def of_manifest(manifest):
    """Registers and fields in the packager's words."""
    registers = {}
    for register in manifest["registers"]:
        access = ACCESS[register["access"]]
        written = {"modified_write_value": "oneToClear"} if register["access"] == "RW1C" else {}
        fields = [
            {"name": f["name"], "bit_offset": str(f["lsb"]), "bit_width": str(f["width"]), "access": access,
             "description": f["description"], **written}
            for f in register["fields"]
        ]  # fmt: skip
        registers[register["name"]] = (register["offset"], access, register["description"], fields)
    return registers


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_registers_and_fields_are_those_of_the_manifest(sources, stream_bits):
    made = sources(stream_bits=stream_bits)
    core = made.package().core
    block = core["maps"]["s_axi"]["Reg"]
    assert (block["base_address"], block["range"], block["width"], block["usage"]) == ("0", "4096", "32", "register")
    assert {r["size"] for r in block["registers"]} == {"32"}
    packaged = {
        r["name"]: (int(r["address_offset"], 16), r["access"], r["description"], r["fields"])
        for r in block["registers"]
    }
    assert packaged == of_manifest(made.manifest)
    assert len(packaged) > 20
    assert packaged["IRQ_STATUS"][3][0]["modified_write_value"] == "oneToClear"


def test_the_hwh_has_the_same_registers_and_fields(sources):
    made = sources()
    found = {}
    for register in hwh.read(hwh_text(made.design)).registers:
        own = properties(register)
        fields = []
        for field in register.iter("FIELD"):
            p = properties(field)
            written = {"modified_write_value": p["MODIFIED_WRITE_VALUE"]} if "MODIFIED_WRITE_VALUE" in p else {}
            fields.append({"name": field.get("NAME"), "bit_offset": p["BIT_OFFSET"], "bit_width": p["BIT_WIDTH"],
                           "access": p["ACCESS"], "description": p["DESCRIPTION"], **written})  # fmt: skip
        offset = int(own["ADDRESS_OFFSET"], 16)
        found[register.get("NAME")] = offset, own["ACCESS"], own["DESCRIPTION"], fields
    assert found == of_manifest(made.manifest)


def properties(element):
    """The PROPERTY elements directly inside one."""
    return {p.get("NAME"): p.get("VALUE") for p in element.findall("PROPERTY")}


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_interfaces(sources, stream_bits):
    made = sources(stream_bits=stream_bits)
    core = made.package().core
    assert core["vlnv"] == made.manifest["vlnv"]
    assert set(core["buses"]) == {"s_axi", "s_axis", "m_axis", "clk", "rst", "irq"}
    parameters = {name: bus["parameters"] for name, bus in core["buses"].items() if bus["parameters"]}
    assert parameters == {
        "s_axi": {"PROTOCOL": "AXI4LITE"},
        "clk": {"ASSOCIATED_BUSIF": "s_axi:s_axis:m_axis", "ASSOCIATED_RESET": "rst"},
        "rst": {"POLARITY": "ACTIVE_HIGH"},
        "irq": {"SENSITIVITY": "LEVEL_HIGH"},
    }
    assert core["ports"]["s_axis_tdata"] == ("in", stream_bits)
    assert core["parameters"] == {"DIGEST": made.manifest["digest"], "STREAM_BITS": str(stream_bits)}


def test_packaging_twice_replaces_the_first(sources):
    made = sources()
    assert made.package().core == made.package().core


MISTAKES = [
    ("package_ip.tcl", "ipx::add_field ", "ipx::add_register_field ", 'invalid command name "ipx::add_register_field"'),
    ("package_ip.tcl", "bit_offset", "bit_ofset", "property bit_ofset does not exist on field"),
    ("package_ip.tcl", "-import_files", "-import", "ipx::package_project: unknown option -import"),
    ("package_ip.tcl", "set_property top $core_top", "set_property top top", "no module 'top' among the files"),
    ("package_ip.tcl", "slave_memory_map_ref", "memory_map_ref", "property memory_map_ref does not exist on bus"),
    (
        "core.tcl",
        "TVALID m_axis_tvalid",
        "VALID m_axis_tvalid",
        "ipx::add_port_map: xilinx.com:interface:axis:1.0 has no VALID",
    ),
    (
        "core.tcl",
        "ASSOCIATED_BUSIF",
        "ASSOCIATED_BUS",
        "ipx::add_bus_parameter: xilinx.com:signal:clock:1.0 has no ASSOCIATED_BUS",
    ),
    ("core.tcl", "{CONTROL START", "{CONTROLS START", "no register 'CONTROLS'"),
    ("core.tcl", "src/npu.v", "src/npus.v", "add_files: no file"),
]


@pytest.mark.parametrize(("file", "old", "new", "said"), MISTAKES, ids=[f"{m[1]}>{m[2]}".strip() for m in MISTAKES])
def test_a_mistake_is_caught(sources, file, old, new, said):
    made = sources()
    made.change(file, old, new)
    with pytest.raises(TclError, match=re.escape(said)):
        made.package()
