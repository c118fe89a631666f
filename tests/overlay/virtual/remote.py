"""pynq's own RemoteDevice on a server in this process.

pynq chooses its classes for interrupts when it is imported, by PYNQ_REMOTE_DEVICES, and looks for boards at one port
only. Tests of whole clients set that variable, for another process (tests/overlay/virtual/serve/test_stock_pynq.py).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pynq.overlay
import pytest
from pynq.pl_server.device import Device
from pynq.pl_server.remote_device import RemoteDevice, RemoteInterrupt

from bitloom.overlay.virtual.board.device import reset_clocks
from bitloom.overlay.virtual.serve import PORT
from bitloom.overlay.virtual.serve.server import Server


@contextmanager
def remote_device(server: Server) -> Iterator[RemoteDevice]:
    """The active device, set up as pynq is with PYNQ_REMOTE_DEVICES."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pynq.overlay, "Interrupt", RemoteInterrupt)
        device = RemoteDevice(0, server.host, server.port)
        patch.setattr(Device, "_active_device", device, raising=False)
        reset_clocks()
        try:
            yield device
        finally:
            device.client.channel.close()
            reset_clocks()
            end = time.monotonic() + 120
            while server.holder.client is not None:  # the next one shall find the board free
                assert time.monotonic() < end
                time.sleep(0.01)


@contextmanager
def remote_devices(addresses: Sequence[str]) -> Iterator[list[RemoteDevice]]:
    """Devices of servers in other processes, set up as pynq is with PYNQ_REMOTE_DEVICES."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pynq.overlay, "Interrupt", RemoteInterrupt)
        devices = [RemoteDevice(number, address, PORT) for number, address in enumerate(addresses)]
        reset_clocks()
        try:
            yield devices
        finally:
            for device in devices:
                device.client.channel.close()
            reset_clocks()
