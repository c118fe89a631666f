"""Trained low-bit neural networks become FPGA accelerators for PYNQ boards, proved on a laptop.

`Network` and `Model` say what is computed and need numpy alone; `Accelerator` and `BitloomOverlay` drive the hardware
and need pynq, which is imported when one of them is first asked for. `__version__` is that of the installed package.
"""

from typing import TYPE_CHECKING

from bitloom.golden.network import Model, Network

if TYPE_CHECKING:
    from bitloom.driver.accelerator import Accelerator
    from bitloom.driver.overlay import BitloomOverlay

    __version__: str

__all__ = ["Accelerator", "BitloomOverlay", "Model", "Network"]


def __getattr__(name: str) -> object:
    """The names that need pynq, and the version, which only pyproject.toml says."""
    if name == "__version__":
        from bitloom.golden.distribution import version

        return version()
    if name == "Accelerator":
        from bitloom.driver.accelerator import Accelerator

        return Accelerator
    if name == "BitloomOverlay":
        from bitloom.driver.overlay import BitloomOverlay

        return BitloomOverlay
    raise AttributeError(f"module 'bitloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those too that are imported when one first asks for them."""
    return sorted({*globals(), *__all__, "__version__"})
