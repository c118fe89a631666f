"""The pynq device that an overlay is downloaded to."""

import warnings
from pathlib import Path
from typing import Any

from .errors import DeviceError
from .pynq_api import Device


def active_device(overlay: object) -> Any:
    """Find the device that pynq uses where none is said.

    Parameters
    ----------
    overlay
        Path of the .bit file that is to be downloaded, for the message.

    Returns
    -------
    pynq.Device
        The active one, which is the board's own unless another one was made active.

    Raises
    ------
    DeviceError
        There is none: this is no board, and no virtual one is active.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No devices found", UserWarning)  # the error says it
            return Device.active_device
    except RuntimeError:  # pynq's own text, "No Devices Found", names neither a rule nor a remedy
        raise DeviceError(
            f"{Path(str(overlay)).stem}: a PYNQ board must be there, got none; for a virtual board say first: "
            "from bitloom.overlay.virtual.board import activate; activate()"
        ) from None
