"""Devices as pynq knows them: the active device, the cores of an overlay, and their interrupts."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from .errors import DesignMismatch, DeviceError
from .pynq_api import PynqDevice, pynq
from .waiting import Interrupt


def active_device(overlay: object) -> Any:
    """Find the device that pynq uses by default.

    Parameters
    ----------
    overlay
        Path of the .bit file that is to be downloaded, for the message.

    Returns
    -------
    pynq.Device
        The active device: the board's, unless another device was made active.

    Raises
    ------
    DeviceError
        There is no device: this is no board, and no virtual board is active.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No devices found", UserWarning)  # the error says it
            return PynqDevice.active_device
    except RuntimeError:  # pynq's own text, "No Devices Found", names neither a rule nor a remedy
        raise DeviceError(
            f"{Path(str(overlay)).stem}: a PYNQ board must be there, got none; for a virtual board say first: "
            "from bitloom.overlay.virtual.board import activate; activate()"
        ) from None


def find_core(
    overlay: Any, name: str, wanted: str | None, vlnv: str | tuple[str, ...], what: str, preferred: str = ""
) -> str:
    """Find a core in an overlay.

    Parameters
    ----------
    overlay
        ``pynq.Overlay``.
    name
        Beginning of messages.
    wanted
        Name of the core; None where there must be one.
    vlnv
        How the core's VLNV begins; several for cores that one driver drives.
    what
        Thing that is looked for, for messages.
    preferred
        Name of the core that is taken where there are several.

    Returns
    -------
    str
        Its name in ``ip_dict``.

    Raises
    ------
    DesignMismatch
        If there is none, or several.
    """
    cores = {key: str(entry.get("type")) for key, entry in overlay.ip_dict.items()}
    starts = tuple(f"{start}:" for start in ((vlnv,) if isinstance(vlnv, str) else vlnv))
    names = [key for key, kind in cores.items() if f"{kind}:".startswith(starts) and wanted in (None, key)]
    if preferred in names:
        return preferred
    if len(names) != 1:
        listing = ", ".join(f"{key} ({kind})" for key, kind in cores.items())
        rule = "exactly one" if wanted is None else f"one named {wanted}:"
        raise DesignMismatch(f"{name}: the overlay must have {rule} {what}, got {listing or 'no cores'}")
    return str(names[0])


def driver_of(overlay: Any, core: str) -> Any:
    """pynq's driver of a core, with the interrupts of the overlay's device.

    pynq takes interrupts from its active device. It refers to their controllers weakly, and forgets those of all
    devices when it is asked for one after an overlay was loaded anywhere. So the driver is made, and its interrupts
    are connected anew, while the overlay's device is the active one; and each interrupt keeps its controller alive.

    Parameters
    ----------
    overlay
        ``pynq.Overlay``.
    core
        Name of the core in ``ip_dict``.
    """
    with _active(overlay.device):
        driver = reduce(getattr, core.split("/"), overlay)
        for name, entry in overlay.ip_dict[core].get("interrupts", {}).items():
            interrupt: Any = getattr(driver, name, None)
            if Interrupt(interrupt).wired:
                fresh = type(interrupt)(entry["fullpath"])
                interrupt.parent = fresh.parent
                interrupt.number = fresh.number
                interrupt.controller = fresh.parent()
    return driver


@contextmanager
def _active(device: Any) -> Iterator[None]:
    """Make ``device`` pynq's active device while the block runs; without any device, who looks for one raises."""
    try:
        before = pynq.Device.active_device
    except RuntimeError:
        yield
        return
    pynq.Device.active_device = device
    try:
        yield
    finally:
        pynq.Device.active_device = before
