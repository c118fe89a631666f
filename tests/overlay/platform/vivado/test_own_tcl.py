"""own.tcl, what a user adds to the block design: the Tcl of the page, run against the stand-ins."""

import json
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.paths import ROOT

from .tcl import TclError
from .test_build_tcl import loose

PAGE = ROOT / "docs" / "how-to" / "own-block-design.md"
EXAMPLES = [block.text for block in blocks(PAGE) if block.language == "tcl"]
IP = "/home/me/ip"
"""Where the page has the user's cores."""


def bus(kind: str, mode: str, ports: dict[str, str], **parameters: str) -> dict[str, object]:
    return {"bus_type_vlnv": f"xilinx.com:{kind}:1.0", "interface_mode": mode, "ports": ports, "parameters": parameters}


SENSOR = {
    "vlnv": "example.com:user:sensor:1.0",
    "buses": {
        "clk": bus("signal:clock", "slave", {"CLK": "clk"}),
        "resetn": bus("signal:reset", "slave", {"RST": "resetn"}),
        "pixels": {**bus("interface:axis", "master", {}), "master_address_space_ref": ""},
        "results": bus("interface:axis", "slave", {}),
    },
    "parameters": {},
    "spaces": {},
    "maps": {},
}
"""The page's sensor, as the stand-in for packaging writes cores."""


@pytest.fixture
def built(sources, tmp_path):
    """built(TEXT, ...) -> the block design with an own.tcl of these parts."""
    folder = tmp_path / "ip"
    (folder / "sensor").mkdir(parents=True)
    (folder / "sensor" / "component.xml").write_text(json.dumps(SENSOR))

    def build(*parts: str):
        project = sources(marks="video")
        text = "\n".join(parts).replace(IP, str(folder))
        Path(project.folder / "own.tcl").write_text(text)
        return project.build().design

    return build


def test_without_it_the_raw_stream_waits_for_its_source(sources):
    assert loose(sources(marks="video").build().design) == {"packetizer_0/s_axis_raw"}


def test_the_sensor_of_the_page(built):
    design = built(EXAMPLES[0])
    assert loose(design) == {"sensor_0/results"}
    assert design.links["packetizer_0/s_axis_raw"] == "width_0/M_AXIS"
    assert design.links["width_0/S_AXIS"] == "sensor_0/pixels"
    assert design.links["packetizer_0/s_axis"] == "axi_dma_0/M_AXIS_MM2S"
    assert design.links["bitloom_0/s_axis"] == "packetizer_0/m_axis"
    assert design.drivers["width_0/aclk"] == design.drivers["packetizer_0/clk"] == "processing_system7_0/FCLK_CLK0"
    assert design.drivers["width_0/aresetn"] == "proc_sys_reset_0/peripheral_aresetn"
    assert design.drivers["packetizer_0/rst"] == "proc_sys_reset_0/peripheral_reset"
    assert design.cells["width_0"].values["S_TDATA_NUM_BYTES"] == "4"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sensor_0/pixels", "sensor_0/pixel", "get_bd_intf_pins must find one sensor_0/pixel, found 0"),
        ("user:sensor:", "user:sensors:", "Vivado's catalogue must hold example.com:user:sensors:*, found none"),
        ("/home/me/ip", "/home/me/other", "Vivado's catalogue must hold example.com:user:sensor:*, found none"),
        ("M_TDATA_NUM_BYTES 1 ", "M_TDATA_NUM_BYTES 0 ", "'0' is no value for property CONFIG.M_TDATA_NUM_BYTES"),
    ],
)
def test_a_mistake_is_told(built, old, new, said):
    assert old in EXAMPLES[0]
    with pytest.raises(TclError, match=said.replace("*", r"\*")):
        built(EXAMPLES[0].replace(old, new))
