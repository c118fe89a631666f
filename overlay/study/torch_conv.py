"""PyTorch's own convolutions, to compare ours with. PyTorch is no dependency: whoever wants to compare installs it.

Each number format is timed with the channels first and last in memory; weights and features are converted and put in
that order before. The int8 convolution is the quantized one of PyTorch's CPU engine, whose weights are packed before.
"""

import importlib.util
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

FORMATS = {"cpu": ("fp32", "bf16", "fp16", "int8"), "cuda": ("fp32", "tf32", "bf16", "fp16", "int8")}
"""Number formats by device; the first one is what the others are compared with."""
NO_INT8 = "PyTorch has no int8 convolution for CUDA"
NO_TORCH = "PyTorch was not found: pip install torch"

TimedRun = Callable[[], Any]
"""Computes the convolution once."""


def missing() -> str:
    """Why nothing can be run; "" where PyTorch is there."""
    return "" if importlib.util.find_spec("torch") else NO_TORCH


def no_cuda() -> str:
    """Why nothing can be run on a GPU; "" where PyTorch sees one."""
    if missing():
        return missing()
    import torch

    return "" if torch.cuda.is_available() else "PyTorch finds no CUDA device"


def version() -> str:
    """Version of PyTorch; "" where there is none."""
    if missing():
        return ""
    import torch

    return str(torch.__version__)


def set_threads(count: int) -> None:
    """Let PyTorch use so many processors; nothing happens where it is missing."""
    if not missing():
        import torch

        torch.set_num_threads(count)


def in_stream(pointer: int) -> AbstractContextManager[Any]:
    """In this context PyTorch works in the CUDA stream at that address; nothing happens where it is missing."""
    if no_cuda():
        return nullcontext()
    import torch

    return torch.cuda.stream(torch.cuda.ExternalStream(pointer))


def convolutions(number: str, x: np.ndarray, weight: np.ndarray, padding: int, device: str) -> list[TimedRun]:
    """The convolution of stride 1 in one number format, with the channels first and last in memory.

    Parameters
    ----------
    number
        One of FORMATS.
    x
        (N, H, W, C) of -1 and +1.
    weight
        (O, K, K, C) of -1 and +1.
    padding
        On all four sides.
    device
        "cpu" or "cuda".

    Returns
    -------
    list
        Two runs; a call gives the (N, O, H', W') tensor.

    Raises
    ------
    RuntimeError
        If PyTorch lacks the format; a run may raise it, too.
    """
    import torch

    if number == "int8" and device == "cuda":
        raise RuntimeError(NO_INT8)
    features, kernels = (torch.tensor(np.moveaxis(v, 3, 1), dtype=torch.float32, device=device) for v in (x, weight))
    make = _int8 if number == "int8" else _float
    orders = (torch.contiguous_format, torch.channels_last)
    return [make(number, features, kernels, padding, order) for order in orders]


def _float(number: str, features: Any, kernels: Any, padding: int, order: Any) -> TimedRun:
    """A run in a floating-point format."""
    import torch

    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(number, torch.float32)
    x, w = (tensor.to(dtype).contiguous(memory_format=order) for tensor in (features, kernels))

    @torch.inference_mode()
    def run() -> Any:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = number == "tf32"
        return torch.nn.functional.conv2d(x, w, padding=padding)

    return run


def _int8(number: str, features: Any, kernels: Any, padding: int, order: Any) -> TimedRun:
    """A run with quantized numbers."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized tensors are deprecated, and there is no other int8 convolution yet
        x = torch.quantize_per_tensor(features, 1.0, 64, torch.quint8).contiguous(memory_format=order)
        w = torch.quantize_per_tensor(kernels, 1.0, 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(w, None, [1, 1], [padding, padding], [1, 1], 1)
    return torch.inference_mode()(lambda: torch.ops.quantized.conv2d(x, packed, 16.0, 128))
