"""How the streams of a device reach memory: by AMD's AXI DMA, or by the DMA of hls_gen/rtl/dma.

Both have the same registers and interrupts. What a block design must know of them beside that is a ``DmaCore``.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.dma import LENGTH_BITS, VLNV
from bitloom.hls_gen.design.registers import ADDRESS_BITS


@dataclass(frozen=True, kw_only=True)
class DmaCore:
    """A DMA in a block design. Names of pins are the core's own."""

    name: str
    """Name of the DMA on the command line."""
    vlnv: str
    """Vendor, library, name and version of the core."""
    registers: str
    """Interface of its registers."""
    space_bytes: int
    """Size of their address space."""
    mm2s_memory: str
    s2mm_memory: str
    """mm2s_memory, s2mm_memory: AXI masters that read and write memory."""
    mm2s_stream: str
    s2mm_stream: str
    """mm2s_stream, s2mm_stream: streams to and from the device."""
    clocks: tuple[str, ...]
    """Its clock inputs."""
    reset: tuple[str, str]
    """Kind of its reset, "rst" (active low) or "rst_high", and the reset input."""


def parameters(stream_bits: int, address_bits: int) -> dict[str, object]:
    """Parameters of either core by the names that the hwh has, for the bits of a stream word and of an address: pynq's
    driver reads ``c_include_...``, ``c_..._width`` and the lengths."""
    return {
        "c_include_sg": 0,
        "c_micro_dma": 0,
        "c_sg_length_width": LENGTH_BITS,
        "c_include_mm2s": 1,
        "c_include_s2mm": 1,
        "c_include_mm2s_dre": 0,
        "c_include_s2mm_dre": 0,
        "c_m_axi_mm2s_data_width": stream_bits,
        "c_m_axis_mm2s_tdata_width": stream_bits,
        "c_m_axi_s2mm_data_width": stream_bits,
        "c_s_axis_s2mm_tdata_width": stream_bits,
        "c_mm2s_burst_size": 16,
        "c_s2mm_burst_size": 16,
        "c_addr_width": address_bits,
    }


AMD = DmaCore(
    name="amd",
    vlnv="xilinx.com:ip:axi_dma:7.1",
    registers="S_AXI_LITE",
    space_bytes=0x1_0000,
    mm2s_memory="M_AXI_MM2S",
    s2mm_memory="M_AXI_S2MM",
    mm2s_stream="M_AXIS_MM2S",
    s2mm_stream="S_AXIS_S2MM",
    clocks=("s_axi_lite_aclk", "m_axi_mm2s_aclk", "m_axi_s2mm_aclk"),
    reset=("rst", "axi_resetn"),
)
OWN = DmaCore(
    name="own",
    vlnv=VLNV,
    registers="s_axi",
    space_bytes=1 << ADDRESS_BITS,
    mm2s_memory="m_axi_mm2s",
    s2mm_memory="m_axi_s2mm",
    mm2s_stream="m_axis_mm2s",
    s2mm_stream="s_axis_s2mm",
    clocks=("clk",),
    reset=("rst_high", "rst"),
)
DMA_CORES = {core.name: core for core in (AMD, OWN)}
"""By their names."""
