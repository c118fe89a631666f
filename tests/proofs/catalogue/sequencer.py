"""Proofs of the sequencer's counts: hls_gen/rtl/sequencer/issuer.py and counts.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.issuer import issuer
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec
from tests.proofs.engine import Broken, Proof

RING = 4
SIZES = {"kfp": 8, "kgp": 3, "pfp": 3, "ol": 1, "acc_bits": 16, "layers": 2, "tuple_words": RING, "pool_words": RING}
NPU = Npu.of(**SIZES)
COUNTERS = Npu.of(**SIZES, raster=True)
SPECS = {
    "issuer of the array": SequencerSpec(NPU.array_sequencer),
    "issuer of the array, taps by counters": SequencerSpec(COUNTERS.array_sequencer),
    "issuer of the pool": SequencerSpec(present(NPU.pool_sequencer)),
}


def _issuers() -> Iterator[Proof]:
    for name, spec in SPECS.items():
        gaps = (Broken("arrived_left = claims_ahead ?", "arrived_left = tap_taken ?", "arrived_counts"),)
        rooms = (Broken("(pass_last & room)", "room", "place_of_a_result"),)
        ports = issuer(Library(32, npus=[spec.npu]), spec).m.io_variable
        sign = spec.count_bits - 1
        yield Proof(
            name=name,
            source="hls_gen/rtl/sequencer/issuer.py",
            block=lambda spec=spec: issuer(Library(32, npus=[spec.npu]), spec),
            rules="issuer",
            sizes={"RING": RING},
            hidden={"HOLD": spec.layer_bits("hold_words")},
            flags=("GAP",) * ("tap_gap_words" in ports) + ("ARRAY",) * ("takes_room" in ports),
            steps=2,
            reach=14,
            breaks=(
                Broken("has_free = ~full;", "has_free = 1'd1;", "free_is_free"),
                Broken(f"claims_word ? arrived_minus_1[{sign}] : arrived[{sign}]", f"arrived[{sign}]", "word_is_there"),
                Broken("claims_tuple ?", "skips ?", "arrived_counts"),
                *(gaps if "tap_gap_words" in ports else ()),
                *(rooms if "takes_room" in ports else ()),
            ),
        )


PROOFS = (*_issuers(),)
