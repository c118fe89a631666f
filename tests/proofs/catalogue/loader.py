"""Proofs of the loader: hls_gen/rtl/loader."""

from collections.abc import Callable, Iterator

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import ERRORS, MAGIC
from bitloom.hls_gen.design.loader import STATES
from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import ring
from bitloom.hls_gen.rtl.loader import loader
from bitloom.hls_gen.rtl.loader.load import LoadPort
from bitloom.hls_gen.rtl.primitives.memory import Library, write_port
from tests.proofs.engine import Broken, Proof

NPU = Npu.of(kfp=8, kgp=3, pfp=3, ol=1, acc_bits=16, layers=2)
DESIGNS = {
    "loader of one NPU": Design(name="one", stream_bits=64, npus=(NPU,)),
    "loader of two NPUs": Design(name="two", stream_bits=64, npus=ring([NPU] * 2)),
}
MEMORIES = 16
"""Memories of an NPU that the rules have a place for; a header may name others."""


def _table(design: Design, value: Callable[[Memory], int]) -> str:
    """A number of each memory of each NPU, as a Verilog constant of 24 bits each."""
    numbers = [{m.id: value(m) for m in memory_map(npu)}.get(k, 0) for npu in design.npus for k in range(MEMORIES)]
    return f"{24 * len(numbers)}'h{''.join(f'{number:06x}' for number in reversed(numbers))}"


def _loads(design: Design) -> str:
    """The bits of the load bus that say what is written, as a concatenation in Verilog: of each NPU, by id of a memory.
    The network's row, with id 0, stays in the loader."""
    names = [{m.id: m.name for m in memory_map(npu)[1:]} for npu in design.npus]
    places = [
        f"npu{n}_{write_port(of_npu[k])}" if k in of_npu else "1'd0"
        for n, of_npu in enumerate(names)
        for k in range(MEMORIES)
    ]
    return ",".join(reversed(places))


def _proofs() -> Iterator[Proof]:
    for name, design in DESIGNS.items():
        port = LoadPort.of(design)
        stream_bits = design.stream_bits
        yield Proof(
            name=name,
            source="hls_gen/rtl/loader/loader.py",
            block=lambda design=design: loader(Library(design.stream_bits, npus=design.npus), design),
            rules="loader",
            sizes={"NPUS": len(design.npus), "WIDTH": design.stream_bits},
            hidden={
                **{state: k for k, state in enumerate(STATES)},
                **{error.name: error.code for error in ERRORS},
                "DEPTHS": _table(design, lambda m: m.depth),
                "LAST_BANKS": _table(design, lambda m, bits=stream_bits: -(-m.width // bits) - 1),
                "LOADS": _loads(design),
                "MAGIC": MAGIC,
                "ROW_BITS": port.row_bits,
                "BANK_BITS": port.bank_bits,
            },
            flags=("TWO_NPUS",) if len(design.npus) == 2 else (),
            steps=3,
            reach=13,
            breaks=(
                Broken("breaks_header_check <= ~(header_check == ~(header_0 ^ header_1 ^ header_2));",
                       "breaks_header_check <= 1'd0;", "refused"),
                Broken("breaks_memory ? ERROR_BAD_MEMORY :", "", "refused"),
                Broken("breaks_range_end ? ERROR_BAD_RANGE :", "", "refused"),
                Broken("breaks_another | ", "", "refused"),
                Broken("in_judge & ~passed | in_drain;", "in_drain;", "in_error"),
                Broken("in_frame & gearbox_ready | in_drain;", "in_frame & gearbox_ready;", "error_takes_all"),
                Broken("load = in_load & given;", "load = (in_load | in_drain & ~is_load) & given;",
                       "nothing_written_in_error"),
                Broken("early_last <= take & s_axis_tlast & ~payload_final & ~in_drain;",
                       "early_last <= take & s_axis_tlast & (~in_header & ~payload_final & ~in_drain);",
                       "nothing_after_the_cut"),
                Broken("signature <= signature_times_x ^ header_check;", "signature <= header_check;", "signed"),
            ),
        )  # fmt: skip


PROOFS = (*_proofs(),)
