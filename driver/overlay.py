"""A pynq overlay with a bitloom core, used as PYNQ's own overlays are.

    overlay = BitloomOverlay("digits.bit")  # digits.hwh and digits.manifest.json lie beside it
    overlay.load("digits-cnn.program.npz")
    classes = overlay.classify(images)

The calls of every day are here; everything else is ``overlay.accelerator``'s, and pynq's.
"""

from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from .accelerator import Accelerator
from .cores import active_device
from .errors import DeviceError
from .pynq_api import pynq

P = ParamSpec("P")
R = TypeVar("R")


def _of_accelerator(
    method: "Callable[Concatenate[Accelerator, P], R]",
) -> "Callable[Concatenate[BitloomOverlay, P], R]":
    """A method that calls the accelerator's, with its docstring, its parameters and their types."""

    @wraps(method)
    def call(self: "BitloomOverlay", /, *args: P.args, **options: P.kwargs) -> R:
        return method(self.accelerator, *args, **options)

    return call


class BitloomOverlay(pynq.Overlay):  # type: ignore[misc]
    """A ``pynq.Overlay`` with the calls of its accelerator.

    ``load`` sends a compiled network, which ``bitloom build`` wrote (.program.npz). ``predict`` gives its outputs for
    images, (N, H, W, C) integers, and ``classify`` the class of each; of an imported network it takes images as the
    network's file does, and ``scores`` gives what that computes. ``counters`` tells where the cycles went. Use it in a
    ``with`` block, or call ``free`` at the end.

    Parameters
    ----------
    bitfile_name, ignore_version, device
        As for ``pynq.Overlay``.
    download
        Whether the bitstream is loaded: the hardware is then checked against the manifest at once, and pynq sets the
        clock that the .hwh names. Without it nothing is touched until the accelerator is used.
    **options
        ``manifest``, ``core``, ``dma`` and ``timeout`` of Accelerator.
    """

    def __init__(
        self,
        bitfile_name: str,
        download: bool = True,
        ignore_version: bool = False,
        device: Any = None,
        **options: Any,
    ) -> None:
        self._accelerator: Accelerator | None = None
        self._options = options
        device = device or active_device(bitfile_name)
        super().__init__(str(bitfile_name), download=download, ignore_version=ignore_version, device=device)
        # help(overlay) shows this text alone, and pynq's names the cores
        self.__doc__ = f"{cleandoc(type(self).__doc__ or '')}\n\n{cleandoc(self.__doc__ or '')}"
        if download:
            _ = self.accelerator

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator; made when it is first used, and anew after ``download`` and ``free``.

        Raises
        ------
        DeviceError
            Another overlay has been loaded since.
        """
        if self._accelerator is None:
            if not self.is_loaded():
                raise DeviceError(f"{self.bitfile_name}: the overlay must be loaded, got another one: call download()")
            self._accelerator = Accelerator(self, **self._options)
        return self._accelerator

    load = _of_accelerator(Accelerator.load)
    predict = _of_accelerator(Accelerator.predict)
    predict_async = _of_accelerator(Accelerator.predict_async)
    classify = _of_accelerator(Accelerator.classify)
    scores = _of_accelerator(Accelerator.scores)
    counters = _of_accelerator(Accelerator.counters)
    clear_counters = _of_accelerator(Accelerator.clear_counters)

    @property
    def utilisation(self) -> tuple[float, ...]:
        """Per NPU: share of the transfers' cycles in which its array was fed, 0..1."""
        return self.accelerator.utilisation

    @property
    def results(self) -> Any:
        """Where results are after ``load(..., results=N)``: pynq's buffer, as of Accelerator; else None."""
        return self.accelerator.results

    def download(self, dtbo: str | None = None) -> None:
        """Load the bitstream (again). The program must be loaded after it."""
        self._close()
        super().download(dtbo)

    def free(self) -> None:
        """Free the buffers, and what pynq holds. The program must be loaded after it."""
        self._close()
        super().free()

    def __repr__(self) -> str:
        return f"<BitloomOverlay {self.bitfile_name}: {self._accelerator or 'not in use'}>"

    def __enter__(self) -> "BitloomOverlay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()

    def _close(self) -> None:
        accelerator = self._accelerator
        self._accelerator = None
        if accelerator is not None:
            accelerator.close()
