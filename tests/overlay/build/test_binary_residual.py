"""The residual network of bits that comes with bitloom, on designs of its own: one NPU, rings and pipelines
(docs/decisions/0022). Random ones are in board_cases.py."""

import pytest

from bitloom.golden import zoo
from bitloom.golden.zoo.digits import load_digits
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from bitloom.overlay.build.small_npu import small_npu
from tests.simulated import compare

NPU = Npu.of(kfp=32, kgp=16, pfp=8, ol=4)
FIRST = NPU.changed(planes=6, shift_bits=0)
STALLS = {"source": 0.3, "sink": 0.3}


def test_the_engine_that_a_network_gets_by_itself() -> None:
    npu = small_npu(zoo.load("digits-residual"))
    assert (npu.engine, npu.array.shift_bits) == ("binary", 3)


@pytest.mark.slow
def test_digits_on_a_design_of_their_own() -> None:
    """The trained network with a skip store as the flow model sizes it, and one with thresholds alone beside it."""
    pytest.importorskip("sklearn")
    models = [zoo.load(name) for name in ("digits-residual", "digits-cnn")]
    design = size_memories("digits", models, FIRST)
    assert design.npus[0].has_skip
    assert Manifest.of(design, "0" * 64).npus == design.npus
    for model in models:
        compare(design, model, images=load_digits().test_images[:40], batches=(40,), stalls=STALLS, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize(("join", "count", "mapping"), [
    (ring, 2, None), (ring, 3, None), (pipeline, 7, None), (cascade, 2, None), (cascade, 3, [0, 0, 0, 2, 2, 2, 2]),
])  # fmt: skip
def test_digits_on_several_npus(join, count: int, mapping: list[int] | None) -> None:
    """Stores are as the flow model sizes them. In the last one NPU 1 hands bits on by a copy."""
    pytest.importorskip("sklearn")
    model, choices = zoo.load("digits-residual"), CompileChoices(mapping=mapping)
    npus = join([FIRST, *[NPU] * (count - 1)])
    design = size_memories(f"digits_{join.__name__}_{count}", [model], npus, choices)
    compare(design, model, choices, images=load_digits().test_images[:20], batches=(20,), stalls=STALLS, seed=3)
