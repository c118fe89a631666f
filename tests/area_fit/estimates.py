"""Record what the area model says of designs: ``python -m tests.area_fit.estimates`` writes estimates.json.

Designs are the area model's samples, the blocks that differ in one thing, designs with the parts that samples lack, and
the reference designs before their memories are sized. A change of the model that is meant to change nothing leaves the
file as it is; a new fit of the coefficients changes it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bitloom.golden.atomic import write_text
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import ring
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.fuzz.designs import BLOCKS, CHAINS, GROUPED, OUTPUTS

from .samples import directed, samples

ESTIMATES = Path(__file__).parent / "estimates.json"
FIELDS = ("lut", "ff", "lutram", "bram36", "dsp", "pairs")
INTEGER = {"engine": "integer", "feature_bits": 8, "weight_bits": 4, "shift_bits": 0, "acc_bits": 24, "ol": 2}
ADDS = {**INTEGER, "kfp": 8, "kgp": 6}
BITS = {"kfp": 5, "kgp": 8, "ol": 2}
FORMER = {"kgp": 8, "ol": 2, "window_former": True, "former_columns": 3}
WIDE_FORMER = {**FORMER, "kfp": 48, "former_column": 48}
PARTS: dict[str, dict] = {
    "addition": {**ADDS, "skip_words": 70},
    "addition_wide": {**INTEGER, "kfp": 2, "kgp": 4, "ol": 4, "skip_words": 9, "pool": False},
    "products": {**ADDS, "skip_words": 64, "map_products": 1},
    "joined": {**ADDS, "skip_words": 64, "joined_words": 16},
    "lookups": {**ADDS, "lookup_rows": 768},
    "packed": {**INTEGER, "kfp": 4, "kgp": 5, "kernels_per_multiplier": 2},
    "depthwise": {**INTEGER, "kfp": 4, "kgp": 5, "pfp": 4, "depthwise": True},
    "kernels": {**BITS, "kernel_binariser": True},
    "one_memory": {**BITS, "one_memory": True},
    "collect": {"kfp": 4, "kgp": 6, "pfp": 4, "ol": 3, "shift_bits": 0, "accumulate": "both", "collect": 4},
    "or_words": {"kfp": 32, "kgp": 8, "pfp": 8, "ol": 4, "shift_bits": 0, "accumulate": "or_words", "word_lanes": 2},
    "former": {**FORMER, "kfp": 5, "former_channels": 2, "former_column": 6, "former_line": 9},
    "former_of_lines": {**WIDE_FORMER, "former_channels": 16, "former_line": 900},
    "former_of_lut_ram": {**WIDE_FORMER, "former_channels": 32, "former_line": timing.LUT_RAM_WORDS},
}
"""Fields of NPUs with parts that no sample has."""


def with_parts() -> Iterator[Design]:
    """Designs with PARTS."""
    return (Design(name=name, npus=(Npu.of(**fields),)) for name, fields in PARTS.items())


def designs() -> Iterator[Design]:
    """The designs whose area is recorded."""
    yield from samples(24, 1)
    yield from (design for _, design in directed())
    yield from with_parts()
    yield Design(name="buffers", npus=ring([Npu.of(kfp=8, kgp=6, ol=2, buffer_words=2)] * 2), spill_words=65)
    for known in (BLOCKS, CHAINS, GROUPED, OUTPUTS):
        yield from (replace(design, name=f"fuzz-{name}") for name, design in known.items())
    for name, reference in REFERENCE_DESIGNS.items():
        yield Design(name=name, npus=reference.npus, stream_bits=reference.stream_bits)


def estimated(design: Design) -> list[float]:
    """FIELDS of a design by the area model."""
    area = estimate(design)
    return [getattr(area, key) for key in FIELDS]


if __name__ == "__main__":
    rows = (f" {json.dumps(design.name)}: {json.dumps(estimated(design))}" for design in designs())
    write_text(ESTIMATES, "{\n" + ",\n".join(rows) + "\n}\n")
