"""Designs for the compiler's tests: their manifests, without hardware."""

from dataclasses import replace

import numpy as np

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.flat import CAPACITIES
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from tests.cases import cases

BEYOND = {"int8", "threshold_of_the_input", "max_pool_of_sums"}
"""Cases that the binary engine can't compute: 8-bit weights, no weights at first, a complement at the end."""

CASES = {name: model for name, model in cases() if name not in BEYOND}
FOLDINGS = {
    "k3_g5": (Npu.of(kfp=3, kgp=5, pfp=4, ol=2), 32),
    "k20_g8_planes": (Npu.of(kfp=20, kgp=8, pfp=8, ol=3, planes=8), 32),
    "k70_g17_stream_64": (Npu.of(kfp=70, kgp=17, pfp=7, ol=17), 64),
}
ORDERS = ("pull", "raster")


def design_manifest(design: Design) -> Manifest:
    return Manifest.of(design, "0" * 64)


def fitted(model: Model, folding: str = "k3_g5", map_order: str = "auto") -> Manifest:
    npu, stream_bits = FOLDINGS[folding]
    return fit_one(model, npu, map_order, stream_bits)


def fit_one(model: Model, npu: Npu, map_order: str = "auto", stream_bits: int = 32) -> Manifest:
    """The manifest of a design whose memories are as small as they may be.

    Its tuple memories are even smaller than hardware makes them: no powers of two.
    """
    choices = CompileChoices(map_order=map_order)
    design = design_manifest(size_memories("small", [model], npu, choices, stream_bits=stream_bits))
    depths = plan(model, design.npus, choices).needs[0].capacities
    return changed(design, 0, **{name: depths[name] for name in ("tuple_words", "pool_words")})


def changed(manifest: Manifest, n: int = 0, **capacities: int) -> Manifest:
    """The manifest with other capacities of NPU ``n``, also such as no NPU may have."""
    assert capacities.keys() <= {*CAPACITIES}
    npu = manifest.npus[n].unchecked(**capacities)
    npus = (*manifest.npus[:n], npu, *manifest.npus[n + 1 :])
    return replace(manifest, design=replace(manifest.design, npus=npus))


def npu_of(folding: str) -> Npu:
    return FOLDINGS[folding][0]


def wanted_order(positions: np.ndarray, map_order: str) -> list[int]:
    """(windows, taps) positions -> those that are read, as they are first, or row-major."""
    seen: dict[int, None] = {}
    for position in positions.ravel().tolist():
        if position >= 0:
            seen[position] = None
    return list(seen) if map_order == "pull" else sorted(seen)
