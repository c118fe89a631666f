"""The area model's blocks and memories are those of the generated Verilog."""

import json
from collections import Counter
from functools import cache

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import RAM_STYLES
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.primitives.memory import RAMS
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area, BlockArea, area
from bitloom.overlay.area_model.area_block import sequencer_modules
from bitloom.overlay.area_model.blocks import area_blocks, stores
from bitloom.overlay.area_model.estimate import (
    coefficients,
    error,
    estimate,
    estimate_cores,
    estimate_outlets,
    of_blocks,
)
from bitloom.overlay.area_model.products import dsps
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from tests.area_fit import estimates, refit
from tests.area_fit.instances import instances
from tests.area_fit.least_squares import fitted, matched
from tests.area_fit.samples import USUAL, samples
from tests.overlay.area.test_area import needs_yosys

DESIGNS = [design for k, design in enumerate(samples(10, 1)) if k in (1, 2, 3, 4, 9)]
DESIGNS += estimates.with_parts()
INSIDE = ("popcount", "lut_ram", "block_ram", *sequencer_modules("array"), *sequencer_modules("pool"))
"""Modules that are counted with the one around them, or by rule."""


LATENCIES = {name: latency for (latency, _), name in RAMS.items()}
"""Cycles of a read of each RAM, by its module's name."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_every_block_and_memory_is_known(design: Design) -> None:
    counts = instances(generate(design, target="synthesis", checked=False).text, TOP)
    memories: Counter[tuple[int, int, int]] = Counter()
    for one, times in counts.items():
        if one.module in LATENCIES:
            sizes = dict(one.values)
            memories[sizes["WIDTH"], sizes["DEPTH"], LATENCIES[one.module]] += times
    wanted: Counter[tuple[int, int, int]] = Counter()
    for store in stores(design):
        wanted[store.width, store.depth, store.latency] += store.times
    assert wanted == memories

    modules = {one.name: times for one, times in counts.items() if not one.module.startswith(INSIDE)}
    blocks = tuple(BlockArea(name, times, Resources(), Resources()) for name, times in modules.items())
    matches = list(matched(design, Area(Resources(), blocks, ())))
    assert len(matches) == len(area_blocks(design))
    assert sum(block.times for block, _ in matches) == sum(modules.values())


@pytest.mark.slow
def test_finds_the_coefficients_of_a_linear_world() -> None:
    """Where a block has 3 LUTs for each unit of each of its sizes, the formulas give them."""

    def area(design: Design) -> Area:
        text = generate(design, target="synthesis", checked=False).text
        unknown = tuple(BlockArea(one.name, n, Resources(), Resources()) for one, n in instances(text, TOP).items())
        blank = Area(Resources(), unknown, ())
        blocks_of_module = {
            b.module: [block for block, _ in matched(design, Area(Resources(), (b,), ()))] for b in unknown
        }
        by_module = {}
        for block, _ in matched(design, blank):
            module = next(name for name, own in blocks_of_module.items() if block in own)
            by_module[module] = 3 * sum(block.features.values())
        blocks = tuple(
            BlockArea(b.module, b.instances, *[Resources(lut=round(by_module.get(b.module, 0)))] * 2)
            for b in blank.blocks
        )
        total = sum(block.alone.lut * block.instances for block in blocks)
        return Area(Resources(lut=total), blocks, ())

    measured = [(design, area(design)) for design in DESIGNS]
    fit = fitted(measured)
    for kind in ("pe_popcount", "array_sequencer", "results_binary"):
        for design, design_area in measured:
            for block, figures in matched(design, design_area):
                if block.kind == kind:
                    value = sum(fit["blocks"][kind]["lut"].get(n, 0) * v for n, v in block.features.items())
                    assert value == pytest.approx(figures.lut, rel=0.1)


@pytest.mark.parametrize(
    ("multiplier_bits", "fraction", "lut", "ff", "dsp"),
    [(16, 0, 564, 385, 1), (16, 16, 702, 490, 2), (24, 0, 615, 458, 2), (31, 0, 724, 445, 2), (31, 16, 942, 609, 4)],
)
def test_a_wide_requantisation_costs_what_yosys_makes_of_it(multiplier_bits, fraction, lut, ff, dsp) -> None:
    """Figures of ``results_unit`` are those of Yosys 0.70 for these designs; the first is the narrow one."""
    npus = USUAL, USUAL.changed(multiplier_bits=multiplier_bits, bias_fraction_bits=fraction)
    units = [
        block for n in npus for block in area_blocks(Design(name="d", npus=(n,))) if block.kind == "results_integer"
    ]
    assert units[1].dsp == dsp
    narrow, wide = (of_blocks([unit], coefficients()) for unit in units)
    assert wide["lut"] - narrow["lut"] == pytest.approx(lut - 564, abs=60)
    assert wide["ff"] - narrow["ff"] == pytest.approx(ff - 385, abs=45)


BLOCKS = {0: [(3, 4)], 1: [(3, 6), (4, 5), (8, 8), (25, 18)], 2: [(26, 17), (25, 19)], 4: [(40, 32), (42, 32)]}
BLOCKS[6] = [(43, 32), (45, 32), (32, 45)]


@pytest.mark.parametrize(
    ("left", "right", "wanted"), [(*bits, count) for count, products in BLOCKS.items() for bits in products]
)
def test_dsp_blocks_of_a_product(left: int, right: int, wanted: int) -> None:
    """40 x 32, 43 x 32 and 45 x 32 bits are those of results units that Yosys 0.70 was asked about."""
    assert dsps(left, right) == wanted


@pytest.mark.parametrize(("words", "lut", "ff"), [(2, 9, 7), (16, 13, 16), (256, 22, 28)])
def test_words_of_two_maps_in_turn_cost_what_yosys_makes_of_them(words: int, lut: int, ff: int) -> None:
    """The writer by itself, beside one of an NPU without, less the LUT RAM of wider rows."""
    lanes = {"kfp": 4, "kgp": 4, "pfp": 4, "ol": 2}
    npu = Npu.of(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, skip_words=64, **lanes)
    writer, without = (
        next(block for block in area_blocks(Design(name="one", npus=(one,))) if block.kind == "array_sequencer")
        for one in (npu.changed(joined_words=words), npu)
    )
    assert (without.lut, without.ff) == (0, 0)
    assert writer.lut == pytest.approx(lut, abs=2)
    assert writer.ff == ff


def test_a_design_is_the_sum_of_its_npus() -> None:
    for design in DESIGNS:
        whole = estimate(design)
        cores = [estimate_cores(npu, design.stream_bits, [npu.array.kernel_ram])[0] for npu in design.npus]
        gears = [estimate_outlets(npu, design.next_word_bits(n)) for n, npu in enumerate(design.npus)]
        alone = sum(core.paired_lut for core in cores) + sum(gears)
        assert 0 < whole.paired_lut - alone < 1500  # loader, registers and output
        assert whole.bram36 - sum(core.bram36 for core in cores) <= 1  # the spill store


def test_estimates_are_as_recorded() -> None:
    """Of each kind of block and of every reference design; `tests.area_fit.estimates` renews the record."""
    recorded = json.loads(estimates.ESTIMATES.read_text())
    assert {design.name: estimates.estimated(design) for design in estimates.designs()} == recorded


RECORDED = json.loads(refit.RECORDED.read_text())
DESIGNS_RECORDED = [name for name in RECORDED if name != "made_with"]
"""Reference designs with their area by Yosys, as it was found."""
MODELLED = {"cnv-w1a1-zcu104"}
"""Reference designs of which no synthesis of the whole is recorded: it takes hours."""


@cache
def reference(name: str) -> Design:
    return REFERENCE_DESIGNS[name].design(name, REFERENCE_DESIGNS[name].models())


@pytest.mark.slow
def test_error_is_stated() -> None:
    """The file says how far the model is off on the reference designs, of which none was fitted to; nor were the
    shares of pairs by which a design's own error is told."""
    stated = error()
    assert coefficients() == refit.with_pairs(coefficients())
    assert stated["designs"] == len(DESIGNS_RECORDED)
    assert {*DESIGNS_RECORDED} == {*REFERENCE_DESIGNS} - MODELLED
    assert stated["median"] <= 0.05
    assert stated["worst"] <= 0.1
    assert not any(design.name in REFERENCE_DESIGNS for design in samples(4, refit.SEED))


@pytest.mark.parametrize("name", DESIGNS_RECORDED)
def test_reference_designs_are_estimated_within_the_stated_error(name: str) -> None:
    by_model = estimate(reference(name))
    recorded = RECORDED[name]
    by_yosys = Resources(**recorded)
    assert (
        abs(by_model.device_lut / by_yosys.device_lut - 1) <= error()["worst"] + 0.005
    )  # by shares of pairs of all designs
    assert (
        round(abs((by_model.lut + by_model.lutram) / (by_yosys.lut + by_yosys.lutram) - 1), 4) <= error()["plain_worst"]
    )
    assert round(abs(by_model.ff / recorded["ff"] - 1), 4) <= error()["ff_worst"]
    assert abs(by_model.bram36 - recorded["bram36"]) <= 1
    assert by_model.dsp == recorded["dsp"]


@needs_yosys
@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS_RECORDED)
def test_the_recorded_areas_are_those_of_yosys(name: str) -> None:
    """To within what other versions of it make of the same text."""
    total = area(reference(name)).total
    for key, value in RECORDED[name].items():
        assert getattr(total, key) == pytest.approx(value, rel=0.02, abs=1), key


def test_every_kind_of_block_has_a_formula() -> None:
    """A kind without one would cost nothing."""
    adding = [design for design in DESIGNS if design.name.startswith("addition")]
    designs = [
        *samples(24, 1),
        *adding,
        *(REFERENCE_DESIGNS[n].design(n, REFERENCE_DESIGNS[n].models()) for n in SMALL),
    ]
    blocks = [block for design in designs for block in area_blocks(design)]
    kinds = {block.kind for block in blocks}
    by_rule = {block.kind for block in blocks if not block.features}
    assert {"pe_integer_lut", "pe_integer_dsp", "pe_popcount", "pe_planes"} <= kinds
    assert not {kind for kind in kinds if not coefficients()["blocks"].get(kind, {}).get("lut")} - by_rule - {"npu"}


SMALL = ("digits-cnn", "cifar-quick-int8")


def test_kernels_in_each_kind_of_ram() -> None:
    """At once, as one by one."""
    npu = Npu.of(kfp=32, kgp=16, kernel_rows=200)
    each = [estimate_cores(npu.changed(kernel_ram=style), 64, [style])[0] for style in RAM_STYLES]
    assert estimate_cores(npu, 64, RAM_STYLES) == each
    assert len({(area.lutram, area.bram36) for area in each}) > 1
