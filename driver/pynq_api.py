"""What the driver uses of pynq. Where pynq can't be used, importing this says why, and what to do, in one line.

pynq 4.0 and earlier need Python 3.12 or earlier and numpy 1; pyproject.toml has the same limits. With numpy 2 pynq can
be imported, but fails at the first buffer.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.docstrings import check_docstrings
from bitloom.hls_gen.design.dma import VLNV

__all__ = ["DMA", "BitloomDma", "PynqDevice", "check_numpy", "explained", "pynq"]


def check_numpy(version: str) -> None:
    """Check that pynq can use this version of numpy; ImportError if it can't."""
    if int(version.partition(".")[0]) >= 2:
        raise ImportError(f"pynq: numpy must be < 2, got {version}: pip install 'numpy<2'")


@contextmanager
def explained() -> Iterator[None]:
    """Run a block that imports pynq; if pynq is missing, the error says what to do."""
    try:
        yield
    except ModuleNotFoundError as e:
        if e.name != "pynq":
            raise
        if sys.version_info >= (3, 13):
            version = ".".join(map(str, sys.version_info[:3]))
            raise ImportError(
                f"pynq: Python must be 3.10 to 3.12, to simulate and to drive a board, got {version}: "
                "install bitloom with one of these"
            ) from None
        raise ImportError(f"pynq: must be installed, to simulate and to drive a board: {pip_install('sim')}") from None


check_docstrings("pynq")
if find_spec("pynq") is not None:
    check_numpy(np.__version__)
with explained():
    import pynq
    from pynq.lib.dma import DMA
    from pynq.pl_server.device import Device as PynqDevice


class BitloomDma(DMA):  # type: ignore[misc]
    """pynq's driver of AMD's AXI DMA, for the core of hls_gen/rtl/dma, which has the same registers."""

    bindto = [VLNV]  # noqa: RUF012 - pynq's own attribute
