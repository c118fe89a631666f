"""The names of pynq that the driver uses. Where pynq is missing, importing this module raises an error that says in one
line what to do.

pynq 4.0 and earlier ask pip for numpy 1, which has no wheel for Python 3.13 and later, though pynq itself runs there
and with numpy 2 but for one attribute of its buffers, which this module mends. There pynq is installed without what it
asks for: `bitloom.golden.distribution.pip_install`.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bitloom.golden.distribution import pip_install
from bitloom.golden.docstrings import check_docstrings
from bitloom.hls_gen.design.dma import VLNV

__all__ = ["DMA", "BitloomDma", "PynqDevice", "explained", "pynq"]


@contextmanager
def explained() -> Iterator[None]:
    """Run a block that imports pynq; if pynq is missing, the error says what to do."""
    try:
        yield
    except ModuleNotFoundError as e:
        if e.name != "pynq":
            raise
        raise ImportError(f"pynq: must be installed, to simulate and to drive a board: {pip_install('sim')}") from None


check_docstrings("pynq")
with explained():
    import pynq
    from pynq.buffer import PynqBuffer
    from pynq.lib.dma import DMA
    from pynq.pl_server.device import Device as PynqDevice

# A buffer sets its device; arrays of numpy 2 have an attribute of that name that can't be set.
PynqBuffer.device = None
with suppress(ImportError):  # pynq 3.0 has no remote boards
    from pynq.pl_server.remote_device import RemoteBuffer

    RemoteBuffer.device = None


class BitloomDma(DMA):  # type: ignore[misc]
    """pynq's driver of AMD's AXI DMA, for the core of hls_gen/rtl/dma, which has the same registers."""

    bindto = [VLNV]  # noqa: RUF012 - pynq's own attribute
