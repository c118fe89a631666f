"""Proofs of the register block: hls_gen/rtl/shell/registers.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import CONTROL, IDENT, NPU_BASE, NPU_STRIDE, counter_names, register_map
from bitloom.hls_gen.design.topology import ring
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.shell.registers import registers
from tests.proofs.engine import Broken, Proof

NPU = Npu.of(kfp=24, kgp=5, pfp=7, ol=2)
DESIGNS = {
    "registers of one NPU": Design(name="one", stream_bits=64, npus=(NPU,)),
    "registers of three NPUs": Design(name="three", stream_bits=32, npus=ring([NPU] * 3)),
}

HANGS = (
    Broken("reads_counter <= read_aligned & ", "reads_counter <= ", "read_answer"),
    Broken("can_show = counter_done |", "can_show =", "read_answer"),
)
"""Breaks that show when a round of counters is over: tried where it is short, for the solver follows every cycle."""
LEAST_ROWS = 8


def _proofs() -> Iterator[Proof]:
    for name, design in DESIGNS.items():
        counters = counter_names(design)
        rows = timing.counter_rows(len(counters))
        at = {register.name: register.offset for register in register_map(design)}
        yield Proof(
            name=name,
            source="hls_gen/rtl/shell/registers.py",
            block=lambda design=design: registers(Library(32), design, "0123456789abcdef" * 4),
            rules="registers",
            sizes={"NPUS": len(design.npus), "ROWS": rows},
            hidden={
                "IDENT": IDENT,
                "CONTROL": CONTROL.offset,
                "LAST_COUNTER": at[counters[-1]],
                "END": NPU_BASE + NPU_STRIDE * len(design.npus),
            },
            steps=4,
            reach=rows + 8,
            breaks=(
                Broken("write_next = write_go & write_whole;", "write_next = write_go;", "control_alone"),
                Broken("(write_strobe == ALL_BYTES) & (write_address[1:0] == FIRST_BYTE)", "write_strobe == ALL_BYTES",
                       "write_refused"),
                Broken("if (s_axi_rready) begin\n        s_axi_rvalid <= 1'd0;",
                       "if (1'd0) begin\n        s_axi_rvalid <= 1'd0;", "one_answer_a_read"),
                Broken("~(decoding | reading | s_axi_rvalid)", "~(decoding | reading)", "one_read_at_a_time"),
                Broken("have_data <= 1'd0;\n        s_axi_bvalid", "s_axi_bvalid", "takes_data"),
                Broken("s_axi_rresp <= read_aligned ? OKAY : SLVERR;", "s_axi_rresp <= OKAY;",
                       "unaligned_read_refused"),
                *(HANGS if rows == LEAST_ROWS else ()),
            ),
        )  # fmt: skip


PROOFS = (*_proofs(),)
