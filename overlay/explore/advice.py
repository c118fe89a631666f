"""Advice on a faster design: single changes of one NPU, each tried with the flow model and the area model.

    --ol 8              1.21 times as fast, 412 more LUT
    --window-former     1.10 times as fast, 530 more LUT

The NPU is the one with most beats, which the others wait for. `bitloom explore` searches whole designs; this says what
one step from a given one brings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.plan import Plan, plans
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.weight_order import whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.platform.boards import Board

LEAST_GAIN = 1.02
"""How many times as fast a change makes a frame at least, to be told."""
DOUBLED = ("ol", "pfp", "kfp", "kgp")
"""Values of the folding that are tried twice as large."""


@dataclass(frozen=True)
class Advice:
    """A change of an NPU that makes frames faster."""

    npu: int
    """The NPU's number."""
    option: str
    """As `bitloom build` takes it, such as ``--ol 8``, or of a design with several NPUs ``--npu 2 --ol 8``."""
    cycles: float
    """Cycles a frame with it, by the flow model; of a network in partitions those of all programs, without loading."""
    gain: float
    """How many times as fast frames are."""
    lut: int
    bram36: float
    dsp: int
    """lut, bram36, dsp: how much more the design takes, by the area model, LUTs as a device counts them; less where it
    is negative."""

    @property
    def text(self) -> str:
        """Gain and cost of the change, for people, such as "1.21 times as fast, 412 more LUT"."""
        sizes = {"LUT": self.lut, "BRAM36": self.bram36, "DSP": self.dsp}
        takes = [f"{abs(more):,g} {'more' if more > 0 else 'fewer'} {name}" for name, more in sizes.items() if more]
        return ", ".join([f"{self.gain:.2f} times as fast", *takes])


def advice_rows(changes: Sequence[Advice]) -> dict[str, str]:
    """Changes as rows of a table."""
    return {f"with {each.option}": each.text for each in changes}


def advice(model: Model, design: Design, choices: CompileChoices, board: Board | None = None) -> list[Advice]:
    """The changes that are worth it, the one with the largest gain first.

    Parameters
    ----------
    model
        The network.
    design
        Design on which the network runs.
    choices
        How it is compiled.
    board
        The board whose device must hold what is changed, by the area model; None: any size will do.
    """
    npus = list(design.npus)
    before = plans(model, npus, choices)
    busiest = max(range(len(npus)), key=lambda n: sum(planned.beats for each in before for planned in each.on(n)))
    size = estimate(_sized(model, npus, design, choices))
    cycles = _cycles(before, design)
    changes = []
    for name, value in _values(npus[busiest]).items():
        try:
            npus[busiest] = design.npus[busiest].changed(**{name: value})
            changed = _sized(model, npus, design, choices)
            after = _cycles(plans(model, changed.npus, choices), changed)
        except ValueError:  # a rule of a part or of the compiler, or a design that can't finish a frame
            continue
        area = estimate(changed)
        if cycles / after >= LEAST_GAIN and (board is None or board.holds(area)):
            lut = area.device_lut - size.device_lut
            option = f"--npu {busiest} " if len(npus) > 1 else ""
            option += f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
            bram36 = area.bram36 - size.bram36
            changes.append(Advice(busiest, option, after, cycles / after, lut, bram36, area.dsp - size.dsp))
    return sorted(changes, key=lambda change: -change.gain)


def _cycles(of: Sequence[Plan], design: Design) -> float:
    """Cycles a frame of all programs together."""
    return sum(simulate(whole_system(each, design)).cycles_per_frame for each in of)


def _values(npu: Npu) -> dict[str, int | bool]:
    """The values that are tried, by their names."""
    doubled: dict[str, int | bool] = {name: 2 * npu.value(name) for name in DOUBLED}
    return {**doubled, "window_former": True}


def _sized(model: Model, npus: Sequence[Npu], design: Design, choices: CompileChoices) -> Design:
    """A design of these NPUs with memories for the network."""
    return size_memories(design.name, [model], npus, choices, stream_bits=design.stream_bits)
