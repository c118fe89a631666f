"""Common parts of the commands demo and simulate: a run with a progress bar, and the figures that are shown."""

from dataclasses import replace

import numpy as np

from bitloom.golden.network import Model
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import Conditions, Run, run

from .progress import bar
from .show import dump, table


def require_pynq() -> None:
    """Refuse a command before its work where pynq is missing, without which no board can be driven or simulated.

    Raises
    ------
    ImportError
        pynq is missing: the line says how to install it.
    """
    from bitloom.driver import pynq_api as pynq_api


def simulated(
    build: builds.Build, model: Model, images: np.ndarray, conditions: Conditions, batch: int | None = None
) -> Run:
    """Run ``images`` on the simulated board, behind a progress bar, the first one alone; parameters as of ``run``."""
    alone = replace(conditions, first_alone=True)
    with bar("building and running the simulation") as update:
        return run(build, model, images, batch=batch, conditions=alone, progress=update)


OPERATION_WORDS = {
    "simulated_xnor_operations_per_second": "XNOR operations",
    "simulated_multiplications_per_second": "multiplications",
}
"""Rates in a report, in words."""


def show_report(title: str, report: dict[str, float], as_json: bool) -> None:
    """Print a run's report as a table with ``title``, or as JSON."""
    if as_json:
        dump(report)
        return
    several = report["frames"] > report["transfers"]
    rows = {
        "frames": f"{report['frames']:,}",
        "bit-exact frames": f"{report['bit_exact_frames']:,}",
        **{
            f"accuracy of {who}": f"{report[f'accuracy_{who}']:.2%}"
            for who in ("golden", "hardware")
            if f"accuracy_{who}" in report
        },
        "latency of the first frame, cycles": f"{report['latency_cycles']:,}",
        **({"cycles a frame, in a stream": f"{report['cycles_per_frame']:,.1f}"} if several else {}),
        "ideal beats a frame": f"{report['ideal_cycles_per_frame']:,}",
        **({"utilisation, in a stream": f"{report['utilisation']:.2%}"} if several else {}),
        "simulated cycles a second": f"{report['simulated_cycles_per_second']:,.0f}",
        **{
            f"simulated {words} a second": f"{report[key]:,.0f}"
            for key, words in OPERATION_WORDS.items()
            if key in report
        },
        "seconds a frame": f"{report['seconds'] / report['frames']:.3f}",
        "seconds to build the model": f"{report['build_seconds']:.1f}",
    }
    table(title, rows)
