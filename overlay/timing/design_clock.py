"""The estimated clock of a design, and what it makes of cycles a frame: what bench, explore and report show."""

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.area.yosys import bare

from .estimate import WORST_ERROR, estimate

GRADE = "artix7-1"
"""Family and speed grade: the fabric of a PYNQ-Z1's or Z2's device."""
HOW = f"estimated for {GRADE} without place and route, off by up to {WORST_ERROR:.0%} on other cores"
"""Words beside the figures."""


def clock_figures(design: Design, cycles_per_frame: float) -> dict[str, float]:
    """The estimated clock of a design (`estimate`), and frames a second at it.

    Parameters
    ----------
    design
        The design.
    cycles_per_frame
        Cycles a frame in a steady stream, > 0.

    Returns
    -------
    dict
        ``estimated_mhz`` and ``frames_per_second_at_it``.

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    """
    mhz = estimate(bare(generate(design, target="synthesis", checked=False).text), TOP, grade=GRADE).mhz
    return {"estimated_mhz": mhz, "frames_per_second_at_it": mhz * 1e6 / cycles_per_frame}
