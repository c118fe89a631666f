"""Finding the cores of an overlay, and whether what answers is what a manifest describes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.registers import VERSION, VERSION_REGISTER
from bitloom.hls_gen.design.training_manifest import TrainingManifest

from .errors import DesignMismatch, DigestMismatch
from .interrupts import connect, wired
from .pynq_api import pynq
from .registers import Registers


def find_core(overlay: Any, name: str, wanted: str | None, vlnv: str, what: str, preferred: str = "") -> str:
    """Find a core in an overlay.

    Parameters
    ----------
    overlay
        ``pynq.Overlay``.
    name
        What messages begin with.
    wanted
        Name of the core; None where there must be one.
    vlnv
        How the core's VLNV begins.
    what
        What is looked for, for messages.
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
    found = [key for key, kind in cores.items() if f"{kind}:".startswith(f"{vlnv}:") and wanted in (None, key)]
    if preferred in found:
        return preferred
    if len(found) != 1:
        listing = ", ".join(f"{key} ({kind})" for key, kind in cores.items())
        rule = "exactly one" if wanted is None else f"one named {wanted}:"
        raise DesignMismatch(f"{name}: the overlay must have {rule} {what}, got {listing or 'no cores'}")
    return str(found[0])


def driver_of(overlay: Any, core: str) -> Any:
    """pynq's driver of a core, with the interrupts of the overlay's device.

    pynq takes interrupts from its active device, and forgets those of all devices when it is asked for one after an
    overlay was loaded anywhere. So the driver is made, and its interrupts are connected anew, while the overlay's
    device is the active one.

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
            if wired(interrupt):
                connect(interrupt, type(interrupt)(entry["fullpath"]))
    return driver


@contextmanager
def _active(device: Any) -> Iterator[None]:
    """Make ``device`` pynq's active one for a while; where pynq has none, whoever looks for it says so."""
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


def check_identity(registers: Registers, manifest: Manifest | TrainingManifest, name: str) -> None:
    """Raise DesignMismatch unless the core that answers is the manifest's."""
    ident = registers.read("IDENT")
    if ident != manifest.ident:
        raise DesignMismatch(f"{name}: IDENT must be 0x{manifest.ident:08X}, got 0x{ident:08X}")
    wanted, version = manifest.vlnv.split(":")[3], registers.read("VERSION")
    found = [str(VERSION_REGISTER.field(name).of(version)) for name in VERSION]
    if found[: wanted.count(".") + 1] != wanted.split("."):
        raise DesignMismatch(f"{name}: VERSION must be that of the manifest, {wanted}, got {'.'.join(found)}")
    digest = registers.digest()
    if digest != manifest.digest[:32]:
        raise DigestMismatch(
            f"{name}: the hardware must have the manifest's digest {manifest.digest[:32]}, got {digest}",
            manifest.digest[:32], digest,
        )  # fmt: skip
