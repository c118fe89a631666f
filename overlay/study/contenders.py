"""Implementations of a binary convolution that are timed beside each other: ours, and PyTorch's.

Bytes are those of the input and of the weights, as the implementation is given them.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.kernels.native import BuildError
from bitloom.golden.kernels.tiled import cpu, gpu, layout
from bitloom.golden.kernels.tiled.conv import PackedConv
from bitloom.golden.kernels.tiled.plan import KERNELS
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.limits import MB, RUN_MB
from bitloom.golden.window import Window
from bitloom.golden.zoo import bnn_pynq

from . import torch_conv

PACKING = "packing the input"
"""Name of the row for the packing, which is in no implementation's time."""
BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "int8": 1}
"""Bytes of a value by number format."""

VALUE_BYTES = 16
"""Bytes that a value of an input or an output takes at most while it is made and compared, int64 among them."""


@dataclass(frozen=True)
class ConvShape:
    """A convolution of stride 1 with a square kernel and the same padding on all sides, on a square map."""

    channels: int
    out_channels: int
    """channels, out_channels: of the input and of the output."""
    kernel: int
    """Rows and columns of the kernel."""
    size: int
    """Rows and columns of the input."""
    padding: int
    """On each side."""

    def __str__(self) -> str:
        padding = f" padding {self.padding}" if self.padding else ""
        return f"{self.channels}->{self.out_channels} {self.kernel}x{self.kernel} at {self.size}x{self.size}{padding}"

    @property
    def output_size(self) -> int:
        """Rows and columns of the output."""
        return self.size + 2 * self.padding - self.kernel + 1


def shapes(texts: Sequence[str] = ()) -> list[ConvShape]:
    """The two shapes that the claims are made for, and the binary layers of CNV.

    Parameters
    ----------
    texts
        Only shapes with one of these texts in their names; () is all of them.

    Raises
    ------
    ValueError
        If a text is in no name.
    """
    network = bnn_pynq.cnv()
    binary = [
        ConvShape(source.channels, layer.out_channels, layer.window(source).kernel[0], source.height, 0)
        for layer, source in network.chain("a benchmark")
        if isinstance(layer, Weighted) and source.encoding == BIPOLAR
    ]
    known = [ConvShape(128, 128, 3, 32, 1), ConvShape(256, 256, 3, 14, 1), *binary]
    for text in texts:
        if not any(text in str(shape) for shape in known):
            raise ValueError(f"bench: shape must be in one of {', '.join(map(str, known))}, got {text!r}")
    return [shape for shape in known if not texts or any(text in str(shape) for text in texts)]


@dataclass
class Contender:
    """An implementation of a shape."""

    implementation: str
    """Its name."""
    input_bytes: int | None = None
    weight_bytes: int | None = None
    """input_bytes, weight_bytes: bytes of the input and of the weights, as the implementation is given them."""
    runs: Sequence[Callable[[], Any]] = ()
    """Its ways to run, of which the fastest counts."""
    reason: str = ""
    """Why there is no way; "" if there is one."""
    times: list[list[float]] = field(default_factory=list)
    """Milliseconds of each round, for each way."""

    @property
    def ms(self) -> float | None:
        """Median of the fastest way in milliseconds, None where nothing ran."""
        return min(statistics.median(times) for times in self.times) if self.times else None


def contenders(device: str, shape: ConvShape, batch: int, threads: int) -> Iterator[Contender]:
    """All implementations of a shape on random bits: ours, checked against PyTorch's, and then PyTorch's.

    Parameters
    ----------
    device
        "cpu" or "cuda".
    shape
        The convolution.
    batch
        Images.
    threads
        Processors that ours use.

    Raises
    ------
    ValueError
        If a bit of ours isn't PyTorch's, or images and results take more memory than golden/limits.py allows.
    """
    values = batch * shape.size**2 * (shape.channels + shape.out_channels)
    RUN_MB.check(f"{shape}, batch {batch:,}", VALUE_BYTES * values / MB)
    rng = np.random.default_rng([shape.channels, shape.out_channels, shape.size, batch])
    x = rng.choice(np.int8([-1, 1]), (batch, shape.size, shape.size, shape.channels))
    weight = rng.choice(np.int8([-1, 1]), (shape.out_channels, shape.kernel, shape.kernel, shape.channels))
    layer = PackedConv(
        name=str(shape),
        channels=shape.channels,
        out_channels=shape.out_channels,
        window=Window(kernel=(shape.kernel,) * 2, padding=(shape.padding,) * 4),
        pad="exact" if shape.padding else "valid",
        weight=layout.pack(weight, 64),
        threshold=np.ones(shape.out_channels, np.int32),
    )
    words = layout.pack(x, 64)
    others = list(_of_torch(device, shape, x, weight))
    dots = next(iter(other.runs[0]() for other in others if other.runs), None)
    bits = None if dots is None else np.moveaxis(dots.float().cpu().numpy(), 1, 3) >= 1  # the thresholds above

    ours = _of_cpu(layer, words, x, threads) if device == "cpu" else _of_cuda(layer, words)
    for contender in ours:
        contender.input_bytes = words.nbytes
        contender.weight_bytes = layer.weight.nbytes
        if contender.runs and contender.implementation != PACKING:
            _check(contender, shape, bits)
        yield contender
    yield from others


def _check(contender: Contender, shape: ConvShape, bits: np.ndarray | None) -> None:
    """Compare ours with PyTorch's, in which every sum is exact; ValueError where a bit differs."""
    output = contender.runs[0]()
    output = layout.unpack(output if isinstance(output, np.ndarray) else output.get(), shape.out_channels)
    if bits is not None and not np.array_equal(output, bits):
        wrong = int((output != bits).sum())
        raise ValueError(f"{shape}: all bits of {contender.implementation} must equal PyTorch's, got {wrong} others")


def _of_cpu(layer: PackedConv, words: np.ndarray, x: np.ndarray, threads: int) -> Iterator[Contender]:
    """Each instruction path of the packed convolution on this processor, and the packing."""
    for path in cpu.paths():
        name = f"bitloom {path}"
        try:
            convolution = cpu.Convolution(layer, path)
        except BuildError as e:
            yield Contender(name, reason=str(e).splitlines()[0])
        else:
            yield Contender(name, runs=[lambda run=convolution: run(words, threads=threads)])
    yield Contender(PACKING, runs=[lambda: layout.pack(x == 1, 64)])


def _of_cuda(layer: PackedConv, words: np.ndarray) -> Iterator[Contender]:
    """The kernels of golden/kernels/tiled on the current GPU."""
    reason = gpu.missing()
    for kernel in KERNELS:
        name = f"bitloom {kernel}"
        if reason:
            yield Contender(name, reason=reason)
            continue
        try:
            run = gpu.Prepared(gpu.best_plan(layer, (len(words), *words.shape[2:]), kernel))
        except ValueError as e:  # the GPU lacks this kernel
            yield Contender(name, reason=str(e))
            continue
        import cupy

        source = cupy.asarray(words)
        output = run(source)
        yield Contender(name, runs=[lambda run=run, source=source, output=output: run(source, output)])


def _of_torch(device: str, shape: ConvShape, x: np.ndarray, weight: np.ndarray) -> Iterator[Contender]:
    """PyTorch's convolution in each number format."""
    reason = torch_conv.missing() if device == "cpu" else torch_conv.no_cuda()
    for number in torch_conv.FORMATS[device]:
        contender = Contender(f"torch {number}", x.size * BYTES[number], weight.size * BYTES[number], reason=reason)
        if not reason:
            try:
                contender.runs = torch_conv.convolutions(number, x, weight, shape.padding, device)
                for run in contender.runs:
                    run()
            except RuntimeError as e:
                contender.runs = ()
                contender.reason = str(e).splitlines()[0]
        yield contender
