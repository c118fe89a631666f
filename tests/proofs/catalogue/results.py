"""Proofs of the results unit: hls_gen/rtl/results/results.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.results import MOST_ONES, results
from tests.proofs.engine import Broken, Proof

NPUS = {
    "results unit": Npu.of(kfp=8, kgp=3, pfp=3, ol=2, acc_bits=16, layers=2),
    "results unit behind 4 accumulators": Npu.of(kfp=8, kgp=4, pfp=4, ol=1, acc_bits=16, layers=2, accumulators=4),
    "results unit behind 8 accumulators": Npu.of(kfp=8, kgp=4, pfp=4, ol=1, acc_bits=16, layers=2, accumulators=8),
    "results unit of integers": Npu.of(
        engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=20, kfp=4, kgp=2, pfp=2, ol=1, layers=2
    ),
}


def _results() -> Iterator[Proof]:
    for name, npu in NPUS.items():
        block = results(Library(32, npus=[npu]), npu)
        several = npu.array.accumulators > 1
        windows = npu.array.accumulators if several else timing.CREDITS
        binary = windows > MOST_ONES
        count_bits = bits_for(windows) if binary else windows
        stays_full = Broken("full <= (full | result_valid) & ~load;", "full <= full | result_valid;", "load_of_results")
        yield Proof(
            name=name,
            source="hls_gen/rtl/results/results.py",
            block=lambda npu=npu: results(Library(32, npus=[npu]), npu),
            rules="results",
            sizes={"WINDOWS": windows},
            hidden={
                "LOADS": ",".join(port for port in block.port_widths if port.startswith("load_to_")),
                "SEVERAL": int(several),
                "QUEUE": npu.group_steps * npu.results.ol * npu.array.acc_bits,
                "STAGES": timing.latencies(npu).activation,
                "FULL": count_bits if several else 1,
                "CREDIT": count_bits,
                **({"BINARY": 1} if binary else {}),
                **({"SLOT": npu.array.slot_bits} if several else {}),
            },
            steps=timing.latencies(npu).activation + 4,
            reach=16,
            breaks=(
                Broken("room = some_credits;", "room = 1'd1;", "room_while_there_is_some"),
                Broken("load = waits & (~busy | free_before & window_last);", "load = waits;", "one_at_work"),
                *(() if several else (stays_full,)),
            ),
        )


PROOFS = (*_results(),)
