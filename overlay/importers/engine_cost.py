"""What each engine would cost: LUTs of PEs for a product a cycle, on average over a network's products.

An NPU's lanes are as wide as its widest layer needs, and a product takes a lane for one or several cycles:

* *binary*: as many as the value has thermometer bits, or the input bit planes; twice as many with ternary weights.
* *integer*: one; one a bit where the binary engine made the map.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitloom.golden.encoding import TERNARY, Encoding, signed_bits
from bitloom.golden.layers.grouped import groups_of
from bitloom.hls_gen.compiler.engine_rules import input_planes, stored_bits
from bitloom.hls_gen.design.widths import WEIGHT_BITS, bits_for
from bitloom.overlay.explore.lane_area import LUTS_OF_DSP, LaneArea, lane_area

from .sections import Section
from .weights import Weights


@dataclass(frozen=True, kw_only=True)
class EngineCost:
    """What engines take for a product a cycle, with an NPU for each kind.

    Attributes
    ----------
    lut, dsp : float
        LUTs and DSP blocks of PEs.
    """

    lut: float
    dsp: float

    @property
    def price(self) -> float:
        """Both in LUTs."""
        return LaneArea(self.lut, self.dsp).price

    def __str__(self) -> str:
        if not self.dsp:
            return f"{self.lut:.1f} LUT a product and cycle"
        return f"{self.price:.1f} LUT a product and cycle, {self.dsp:.2f} DSP among them for {LUTS_OF_DSP:.0f} each"


def cost_of(
    sections: Sequence[Section], weights: Sequence[Weights], held: Sequence[Encoding], engines: Sequence[str]
) -> EngineCost:
    """What a network takes.

    Parameters
    ----------
    sections : sequence of Section
        At least one.
    weights : sequence of Weights
        Of each section.
    held : sequence of Encoding
        How the map is held that each section reads, the input first.
    engines : sequence of str
        Of each section.

    Returns
    -------
    EngineCost
    """
    lanes = {engine: _lane(engine, [k for k, e in enumerate(engines) if e == engine], weights, held)
             for engine in dict.fromkeys(engines)}  # fmt: skip
    lut = dsp = products = 0.0
    for section, one, encoding, engine in zip(sections, weights, held, engines):
        count = section.size[0] * section.size[1] * one.values.size // groups_of(one.values)
        cycles = count * _visits(engine, one.encoding, encoding)
        products += count
        lut, dsp = lut + cycles * lanes[engine].lut, dsp + cycles * lanes[engine].dsp
    return EngineCost(lut=lut / products, dsp=dsp / products)


def _visits(engine: str, weight: Encoding, source: Encoding) -> int:
    """Lanes, or cycles of one, that a product takes."""
    bits = source.bits if source.kind == "bipolar" else 1
    if engine == "integer":
        return bits
    if source.kind != "bipolar":
        bits = input_planes(source) + 1
    return bits * (1 + (weight == TERNARY))


def _lane(engine: str, own: Sequence[int], weights: Sequence[Weights], held: Sequence[Encoding]) -> LaneArea:
    """The lane of an engine that computes the sections with numbers ``own``."""
    acc = max(_sum_bits(weights[k], held[k]) for k in own)
    if engine == "binary":
        planes = max((input_planes(held[k]) for k in own if held[k].kind != "bipolar"), default=0)
        return lane_area(engine, 1, 1, acc, bits_for(planes - 1) if planes else 0)
    features = max(2, *(stored_bits(held[k]) for k in own if held[k].kind != "bipolar"), 2)
    return lane_area(engine, features, min(WEIGHT_BITS, max(stored_bits(weights[k].encoding) for k in own)), acc)


def _sum_bits(weights: Weights, source: Encoding) -> int:
    """Bits of an accumulator that has room for every sum."""
    most = max(source.high, -source.low) * int(abs(weights.values).sum(axis=(1, 2, 3)).max())
    return signed_bits(-most, most)


def costs_text(costs: Mapping[str, EngineCost | str]) -> dict[str, str]:
    """By heading what was found of each engine: what the network costs on it, or why it can't compute all.

    Parameters
    ----------
    costs : dict
        As `EngineChoice` has them.
    """
    headings = {"binary": "on the binary one", "integer": "on the integer one", "both": "on both"}
    return {headings[engine]: f"no: {cost}" if isinstance(cost, str) else str(cost) for engine, cost in costs.items()}
