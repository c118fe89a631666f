"""The hardware handoff file (.hwh) of a block design, as pynqmetadata reads it.

Only what pynq looks at is there: cores with their addresses, registers and fields, interrupt lines, clocks, the
parameters of the DMA, and the digest of the design as a parameter of the device.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from .block_design import DEVICE, DMA, INTERRUPTS, LINES, BlockDesign

AXI_LITE = "xilinx.com:interface:aximm:1.0"
STREAM = "xilinx.com:interface:axis:1.0"
ACCESS = {"RO": "read-only", "RW": "read-write", "RW1C": "read-write", "WO": "write-only"}


def _tag(name: str, attributes: Mapping[str, object], children: Iterable[str] = ()) -> str:
    head = " ".join([name, *(f"{key}={quoteattr(str(value))}" for key, value in attributes.items())])
    body = "".join(children)
    return f"<{head}>{body}</{name}>" if body else f"<{head}/>"


def _properties(values: Mapping[str, object]) -> list[str]:
    return [_tag("PROPERTY", {"NAME": name, "VALUE": value}) for name, value in values.items()]


def _register(register: Mapping[str, Any]) -> str:
    access = ACCESS[register["access"]]
    offset = f"0x{register['offset']:X}"
    fields = [
        _tag(
            "FIELD",
            {"NAME": part["name"]},
            _properties(
                {
                    "DESCRIPTION": part.get("description", ""),
                    "ADDRESS_OFFSET": offset,
                    "ACCESS": access,
                    "BIT_OFFSET": part["lsb"],
                    "BIT_WIDTH": part["width"],
                }
            ),
        )
        for part in register.get("fields", ())
    ]
    properties = {
        "DESCRIPTION": register.get("description", ""),
        "ADDRESS_OFFSET": offset,
        "SIZE": 32,
        "ACCESS": access,
        "IS_ENABLED": "true",
        "RESET_VALUE": "0x0",
    }
    return _tag("REGISTER", {"NAME": register["name"]}, [*_properties(properties), _tag("FIELDS", {}, fields)])


def _bus(name: str, kind: str, vlnv: str) -> str:
    return _tag("BUSINTERFACE", {"BUSNAME": f"net_{name}", "NAME": name, "TYPE": kind, "VLNV": vlnv})


def _port(name: str, direction: str, *connections: tuple[str, str], interrupt: bool = True) -> str:
    attributes = {"DIR": direction, "NAME": name, **({"SIGIS": "INTERRUPT"} if interrupt else {})}
    ends = [_tag("CONNECTION", {"INSTANCE": instance, "PORT": port}) for instance, port in connections]
    return _tag("PORT", attributes, [_tag("CONNECTIONS", {}, ends)])


def _module(
    instance: str,
    vlnv: str,
    *,
    buses: Sequence[str] = (),
    ports: Sequence[str] = (),
    parameters: Mapping[str, object] | None = None,
    registers: Sequence[str] = (),
    memory: Sequence[str] = (),
    programmable_logic: bool = True,
) -> str:
    attributes = {
        "COREREVISION": 1,
        "FULLNAME": f"/{instance}",
        "HWVERSION": vlnv.split(":")[3],
        "INSTANCE": instance,
        "IPTYPE": "PERIPHERAL",
        "IS_ENABLE": 1,
        "MODCLASS": "PERIPHERAL",
        "MODTYPE": vlnv.split(":")[2],
        "VLNV": vlnv,
        **({} if programmable_logic else {"IS_PL": "FALSE", "CONFIGURABLE": "TRUE"}),
    }
    children = []
    if registers:
        block = {"ACCESS": "read-write", "INTERFACE": "s_axi", "NAME": "Reg", "RANGE": 4096, "USAGE": "register"}
        children.append(_tag("ADDRESSBLOCKS", {}, [_tag("ADDRESSBLOCK", block, [_tag("REGISTERS", {}, registers)])]))
    named = [_tag("PARAMETER", {"NAME": name, "VALUE": value}) for name, value in (parameters or {}).items()]
    children += [_tag("PARAMETERS", {}, named), _tag("PORTS", {}, ports), _tag("BUSINTERFACES", {}, buses)]
    if memory:
        children.append(_tag("MEMORYMAP", {}, memory))
    return _tag("MODULE", attributes, children)


def _clock_parameters(design: BlockDesign) -> dict[str, object]:
    """Clock 0 runs at clock_mhz, the others are off."""
    parameters: dict[str, object] = {}
    for i in range(4):
        # pynq 4.0.0 looks for the UltraScale+ name of the frequency on Zynq-7000 too, and fails where it is missing.
        parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__ACT_FREQMHZ"] = design.clock_mhz
        if design.arch == "zynqmp":
            parameters[f"PSU__FPGA_PL{i}_ENABLE"] = int(i == 0)
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__DIVISOR0"] = 15
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__DIVISOR1"] = 1
            parameters[f"PSU__CRL_APB__PL{i}_REF_CTRL__SRCSEL"] = "IOPLL"
        else:
            parameters[f"PCW_FPGA_FCLK{i}_ENABLE"] = int(i == 0)
            parameters[f"PCW_FCLK{i}_PERIPHERAL_DIVISOR0"] = 5
            parameters[f"PCW_FCLK{i}_PERIPHERAL_DIVISOR1"] = 2
            parameters[f"PCW_FCLK{i}_PERIPHERAL_CLKSRC"] = "IO PLL"
            parameters[f"PCW_ACT_FPGA{i}_PERIPHERAL_FREQMHZ"] = design.clock_mhz
    return parameters


def _processor_module(design: BlockDesign) -> str:
    ps = design.processor
    slaves = {DMA: "S_AXI_LITE", DEVICE: "s_axi", INTERRUPTS: "s_axi"}
    ranges = [
        _tag(
            "MEMRANGE",
            {
                "ADDRESSBLOCK": "Reg",
                "BASENAME": "C_BASEADDR",
                "BASEVALUE": f"0x{base:X}",
                "HIGHNAME": "C_HIGHADDR",
                "HIGHVALUE": f"0x{base + size - 1:X}",
                "INSTANCE": instance,
                "IS_DATA": "TRUE",
                "IS_INSTRUCTION": "TRUE",
                "MASTERBUSINTERFACE": ps.control,
                "MEMTYPE": "REGISTER",
                "SLAVEBUSINTERFACE": slaves[instance],
            },
        )
        for instance, (base, size) in design.address_map.items()
    ]
    return _module(
        ps.instance,
        ps.vlnv,
        buses=[_bus(ps.control, "MASTER", AXI_LITE), _bus(ps.memory, "SLAVE", AXI_LITE)],
        ports=[_port(ps.interrupt, "I", (INTERRUPTS, "irq"))],
        parameters=_clock_parameters(design),
        memory=ranges,
        programmable_logic=False,
    )


def hwh_text(design: BlockDesign) -> str:
    """The .hwh file. The same text for the same design."""
    ps = design.processor
    dma_buses = [_bus("S_AXI_LITE", "SLAVE", AXI_LITE), _bus("M_AXI_MM2S", "MASTER", AXI_LITE)]
    dma_buses += [_bus("M_AXI_S2MM", "MASTER", AXI_LITE)]
    dma_buses += [_bus("M_AXIS_MM2S", "INITIATOR", STREAM), _bus("S_AXIS_S2MM", "TARGET", STREAM)]
    device_buses = [
        _bus("s_axi", "SLAVE", AXI_LITE),
        _bus("s_axis", "TARGET", STREAM),
        _bus("m_axis", "INITIATOR", STREAM),
    ]
    concat = [_port(f"In{i}", "I", line, interrupt=False) for i, line in enumerate(LINES)]
    lines = {port: _port(port, "O", ("xlconcat_0", f"In{i}")) for i, (_, port) in enumerate(LINES)}
    modules = [
        _processor_module(design),
        _module(
            INTERRUPTS,
            "xilinx.com:ip:axi_intc:4.1",
            buses=[_bus("s_axi", "SLAVE", AXI_LITE)],
            ports=[_port("intr", "I", ("xlconcat_0", "dout")), _port("irq", "O", (ps.instance, ps.interrupt))],
        ),
        _module(
            "xlconcat_0",
            "xilinx.com:ip:xlconcat:2.1",
            parameters={"NUM_PORTS": len(LINES)},
            ports=[*concat, _port("dout", "O", (INTERRUPTS, "intr"), interrupt=False)],
        ),
        _module(
            DMA,
            "xilinx.com:ip:axi_dma:7.1",
            buses=dma_buses,
            ports=[lines["mm2s_introut"], lines["s2mm_introut"]],
            parameters=design.dma_parameters,
        ),
        _module(
            DEVICE,
            design.vlnv,
            buses=device_buses,
            ports=[lines["irq"]],
            parameters={"DIGEST": design.digest, "STREAM_BITS": design.stream_bits},
            registers=[_register(register) for register in design.registers],
        ),
    ]
    part = dict(zip(("DEVICE", "PACKAGE", "SPEEDGRADE"), ps.part))
    family = "zynq" if design.arch == "zynq" else "zynquplus"
    system = [
        _tag("SYSTEMINFO", {"ARCH": family, "NAME": design.name, **part}),
        _tag("EXTERNALPORTS", {}),
        _tag("EXTERNALINTERFACES", {}),
        _tag("MODULES", {}, [module + "\n" for module in modules]),
    ]
    root = {"EDKVERSION": "1.2", "TIMESTAMP": "Thu Jan 1 00:00:00 1970", "VIVADOVERSION": "simulation only"}
    return '<?xml version="1.0" encoding="UTF-8" standalone="no" ?>\n' + _tag("EDKSYSTEM", root, system) + "\n"
