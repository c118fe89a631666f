"""A refusal names every capacity that is too small: with just these as large as it says, the network fits."""

import random
import re
from dataclasses import replace

import pytest

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.overlay.fuzz.pick import Pick
from tests.graph_text import network_of
from tests.hls_gen.compiler.graph_cases import BLOCK, SHORTCUT, residual, two_ways
from tests.hls_gen.compiler.test_kept_ways import LATE, LONG, model_of
from tests.hls_gen.compiler.test_residual import NPU
from tests.networks import few_and_many, random_model
from tests.replay.networks import INTEGER, KINDS

SEQUENCER = "layers windows window_taps groups input_words tuple_words pool_words taps olds jumps aheads"
MAPS = "map_words skip_words add_factor_bits add_bias_bits buffer_words"
SIZES = f"acc_bits multiplier_bits {SEQUENCER} kernel_rows threshold_rows {MAPS}".split()
"""Capacities that are made smaller."""
POWERS = ("tuple_words", "pool_words", "buffer_words")
SMALL = NPU.changed(kfp=2, kgp=8, ol=4, pfp=1, buffer_words=32)
SHORTAGE = re.compile(r"(\w+) must be >= (\d+), (?:NPU (\d+) of )?design d has (\d+)(?:: flow: deadlock: .*)?")


def small_model(network):
    return random_model(network, 1, 32, 31)


BITS = Npu.of(kfp=8, kgp=4, ol=2, pfp=4, shift_bits=0)
DESIGNS = {
    "one": (small_model(two_ways(BLOCK)), (SMALL,)),
    "cascade": (small_model(two_ways(SHORTCUT, 2)), cascade([SMALL, SMALL.changed(kgp=4)])),
    "ring": (small_model(two_ways(BLOCK)), ring([SMALL, SMALL])),
    "binary": (model_of(LATE), (BITS,)),
    "binary_ring": (model_of(LONG), ring([BITS] * 2)),
}


def smaller(npu: Npu, pick: random.Random) -> Npu:
    """The NPU with some capacities smaller, as far as an NPU may have them so."""
    for name in pick.sample(SIZES, pick.choice([1, 3, 6])):
        has = npu.value(name)
        less = has // 2 if name in POWERS else pick.randint(has // 2, has - 1) if has else 0
        try:
            npu = npu.changed(**{name: less})
        except ValueError:
            continue
    return npu


@few_and_many(8, 25)
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DESIGNS)
def test_what_is_told_is_enough(name: str, count: int) -> None:
    model, npus = DESIGNS[name]
    roomy = size_memories("d", [model], npus)
    refused = 0
    for seed in range(count):
        pick = random.Random(seed)
        spill_words = max(2, roomy.spill_words // pick.choice([1, 4])) if roomy.spill_words else 0
        design = replace(roomy, npus=tuple(smaller(npu, pick) for npu in roomy.npus), spill_words=spill_words)
        try:
            compile_model(model, Manifest.of(design, "0" * 64))
        except ValueError as e:
            refused += 1
            compile_model(model, Manifest.of(enlarged(design, str(e)), "0" * 64))
    assert refused >= count // 3


def enlarged(design: Design, refusal: str) -> Design:
    """The design with the capacities that a refusal names, and no others, as large as it says."""
    network, _, told = refusal.partition(": ")
    assert network == "net"
    for part in told.split("; "):
        match = SHORTAGE.fullmatch(part)
        assert match, part
        name = match[1]
        least, has = int(match[2]), int(match[4])
        assert least > has
        if name == "spill_words":
            assert design.spill_words == has
            design = replace(design, spill_words=least)
            continue
        n = int(match[3] or 0)
        assert design.npus[n].value(name) == has
        size = 1 << (least - 1).bit_length() if name in POWERS else least
        grown = design.npus[n].changed(**{name: size})
        design = replace(design, npus=(*design.npus[:n], grown, *design.npus[n + 1 :]))
    return design


def test_one_memory_with_too_few_words() -> None:
    """Features and kernels share their memory: with all the words that features need kernels may have none left."""
    npus = ring([Npu.of(kfp=8, kgp=4, ol=2, pfp=4, shift_bits=0, one_memory=True)] * 2)
    model = random_model(network_of("12x12x8", *(f"conv_{n} 8 3x3, threshold bits_{n}" for n in range(4))), 1)
    words = max(npu.sequencer.tuple_words for npu in size_memories("d", [model], npus).npus)
    design = Design(name="d", npus=ring([npus[0].changed(tuple_words=words // 4, kernel_rows=words // 2)] * 2))
    with pytest.raises(ValueError, match=r"\A\w+: .*tuple_words must be >= \d+, NPU \d of design d has \d+"):
        compile_model(model, Manifest.of(design, "0" * 64))


def test_a_design_without_a_skip_store() -> None:
    """Nothing is said of what an NPU has for the sake of its skip store alone."""
    plain = random_model(residual("conv_1 @input 4 3, conv_2 act_1"), 1, 32)
    design = size_memories("d", [plain], SMALL)
    assert (design.npus[0].value("skip_words"), design.npus[0].sequencer.aheads) == (0, 0)
    first = "net: multiplier_bits must be >= 31, design d has 16; layers must be >= 5"
    with pytest.raises(ValueError, match=rf"\A{first}, .*; skip_words must be >= \d+, design d has 0\Z"):
        compile_model(small_model(two_ways(BLOCK)), Manifest.of(design, "0" * 64))


def test_equal_npus_claim_by_tables_of_one_size() -> None:
    """NPUs without a skip store get a table of tuples that taps claim ahead, too, and have the rows that they need."""
    pick = Pick("eq", "graph", 3)
    model = random_model(KINDS["graph"].network(pick), 3, 32, 16)
    npus = cascade([INTEGER.changed(kfp=4, kgp=4, pfp=4, ol=2)] * 3)
    choices = CompileChoices(map_order="raster")
    design = size_memories("equal", [model], npus, choices, sizing=Sizing(equal=True))
    assert {npu.sequencer.aheads for npu in design.npus} == {3}
    compile_model(model, Manifest.of(design, "0" * 64), choices)
