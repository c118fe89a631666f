"""Speed and memory of the packed binary convolution beside PyTorch's convolutions, on one machine in one run.

What is timed is a layer between layers: packed words in, thresholds, packed words out, which the next layer reads as
they are. So packing is no part of it; it is a row of its own. PyTorch's convolution has no activation behind it and
gets its input in the order of memory in which it is faster (overlay/study/torch_conv.py). It uses as many threads as we
do.

All implementations of a shape and batch are warmed up and then run in turn, again and again, so that a disturbance
meets all of them; ms is the median. Every output of ours is compared with PyTorch's, bit for bit, before it is timed.

Bytes are those of the input and of the weights, as the implementation is given them.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.kernels.native import BuildError
from bitloom.golden.kernels.tiled import cpu, gpu, layout
from bitloom.golden.kernels.tiled.conv import PackedConv
from bitloom.golden.kernels.tiled.plan import plan
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.window import Window
from bitloom.golden.zoo import bnn_pynq

from . import torch_conv

BATCHES = (1, 32)
ROUNDS = 15
ROUND_SECONDS = 0.01
"""An implementation that is faster than this is called several times a round."""
RUN_SECONDS = 5
"""One that has run for so long sits out the rounds that remain: its median is of fewer."""
BASELINE = "torch fp32"
PACKING = "packing the input"
BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "int8": 1}

Row = dict[str, Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Shape:
    """A convolution of stride 1 with a square kernel and the same padding on all sides, on a square map."""

    channels: int
    out_channels: int
    kernel: int
    size: int
    padding: int

    def __str__(self) -> str:
        padding = f" padding {self.padding}" if self.padding else ""
        return f"{self.channels}->{self.out_channels} {self.kernel}x{self.kernel} at {self.size}x{self.size}{padding}"

    @property
    def output_size(self) -> int:
        """Rows and columns of the output."""
        return self.size + 2 * self.padding - self.kernel + 1


def shapes(texts: Sequence[str] = ()) -> list[Shape]:
    """The two that the claims are made for, and the binary layers of CNV; those with any of the texts in their name.

    ValueError where a text is in no name.
    """
    network = bnn_pynq.cnv()
    binary = [
        Shape(source.channels, layer.out_channels, layer.window(source).kernel[0], source.height, 0)
        for layer, source in network.chain("a benchmark")
        if isinstance(layer, Weighted) and source.encoding == BIPOLAR
    ]
    known = [Shape(128, 128, 3, 32, 1), Shape(256, 256, 3, 14, 1), *binary]
    for text in texts:
        if not any(text in str(shape) for shape in known):
            raise ValueError(f"bench: shape must be in one of {', '.join(map(str, known))}, got {text!r}")
    return [shape for shape in known if not texts or any(text in str(shape) for text in texts)]


@dataclass
class Contender:
    """An implementation of a shape: its ways to run, of which the fastest counts, or the reason why there is none."""

    implementation: str
    input_bytes: int | None = None
    weight_bytes: int | None = None
    runs: Sequence[Callable[[], Any]] = ()
    reason: str = ""
    times: list[list[float]] = field(default_factory=list)

    @property
    def ms(self) -> float | None:
        """Median of the fastest way."""
        return min(statistics.median(times) for times in self.times) if self.times else None


def measure(
    device: str,
    *,
    chosen: Sequence[Shape],
    batches: Sequence[int] = BATCHES,
    rounds: int = ROUNDS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """A row for each shape, batch and implementation.

    device : "cpu" or "cuda".  rounds : >= 1, that the median is of.  threads : by default one a processor.
    progress : called with (shapes and batches done, all of them).
    A row has ``shape``, ``batch``, ``implementation``, ``ms``, ``speedup_vs_torch_fp32``, ``input_bytes``,
    ``weight_bytes``, ``device``, ``threads``, and ``reason``: why ms is None, else "". ValueError where ``device`` or
    ``rounds`` is not as above.
    """
    if device not in torch_conv.FORMATS:
        raise ValueError(f"bench: device must be one of {', '.join(torch_conv.FORMATS)}, got {device!r}")
    if rounds < 1:
        raise ValueError(f"bench: rounds must be >= 1, got {rounds}")
    cases = [(shape, batch) for shape in chosen for batch in batches]
    threads = cpu.processors() if threads is None else threads
    torch_conv.set_threads(threads)
    timed = _timed_cpu if device == "cpu" else _timed_cuda
    name = machine(device)
    rows: list[Row] = []
    for number, (shape, batch) in enumerate(cases, 1):
        candidates = list(_candidates(device, shape, batch, threads))
        _time(candidates, rounds, timed)
        baseline = next(c.ms for c in candidates if c.implementation == BASELINE)
        for c in candidates:
            rows.append({
                "shape": str(shape), "batch": batch, "implementation": c.implementation, "ms": c.ms,
                "speedup_vs_torch_fp32": baseline / c.ms if baseline and c.ms else None,
                "input_bytes": c.input_bytes, "weight_bytes": c.weight_bytes,
                "device": name, "threads": threads, "reason": c.reason,
            })  # fmt: skip
        if progress is not None:
            progress(number, len(cases))
    return rows


def machine(device: str) -> str:
    """The processor or the GPU, and PyTorch."""
    if device == "cuda":
        found = "no GPU" if gpu.missing() else _gpu_name()
    else:
        listing = Path("/proc/cpuinfo")
        lines = listing.read_text().splitlines() if listing.is_file() else []
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        found = f"{models[0] if models else 'CPU'}, path {cpu.paths()[0]}"
    return f"{found}, PyTorch {torch_conv.version() or 'missing'}"


def _candidates(device: str, shape: Shape, batch: int, threads: int) -> Iterator[Contender]:
    """Ours, then PyTorch's."""
    rng = np.random.default_rng([shape.channels, shape.out_channels, shape.size, batch])
    x = rng.choice(np.int8([-1, 1]), (batch, shape.size, shape.size, shape.channels))
    weight = rng.choice(np.int8([-1, 1]), (shape.out_channels, shape.kernel, shape.kernel, shape.channels))
    layer = PackedConv(
        name=str(shape), channels=shape.channels, out_channels=shape.out_channels,
        window=Window(kernel=(shape.kernel,) * 2, padding=(shape.padding,) * 4),
        pad="exact" if shape.padding else "valid", weight=layout.pack(weight, 64),
        threshold=np.ones(shape.out_channels, np.int32),
    )  # fmt: skip
    words = layout.pack(x, 64)
    others = list(_torch_candidates(device, shape, x, weight))
    dots = next(iter(other.runs[0]() for other in others if other.runs), None)
    bits = None if dots is None else np.moveaxis(dots.float().cpu().numpy(), 1, 3) >= 1  # the thresholds above

    ours = _cpu_candidates(layer, words, x, threads) if device == "cpu" else _cuda_candidates(layer, words)
    for candidate in ours:
        candidate.input_bytes, candidate.weight_bytes = words.nbytes, layer.weight.nbytes
        if candidate.runs and candidate.implementation != PACKING:
            _check(candidate, shape, bits)
        yield candidate
    yield from others


def _check(candidate: Contender, shape: Shape, bits: np.ndarray | None) -> None:
    """ValueError where the output is not PyTorch's, in which every sum is exact."""
    found = candidate.runs[0]()
    found = layout.unpack(found if isinstance(found, np.ndarray) else found.get(), shape.out_channels)
    if bits is not None and not np.array_equal(found, bits):
        wrong = int((found != bits).sum())
        raise ValueError(f"{shape}: all bits of {candidate.implementation} must equal PyTorch's, got {wrong} others")


def _cpu_candidates(layer: PackedConv, words: np.ndarray, x: np.ndarray, threads: int) -> Iterator[Contender]:
    for path in cpu.paths():
        name = f"bitloom {path}"
        try:
            convolution = cpu.Convolution(layer, path)
        except BuildError as e:
            yield Contender(name, reason=str(e).splitlines()[0])
        else:
            yield Contender(name, runs=[lambda run=convolution: run(words, threads=threads)])
    yield Contender(PACKING, runs=[lambda: layout.pack(x == 1, 64)])


def _cuda_candidates(layer: PackedConv, words: np.ndarray) -> Iterator[Contender]:
    """The kernels of golden/kernels/tiled on the current GPU."""
    reason = gpu.missing()
    for kernel in ("popc", "mma-xor", "mma-and"):
        name = f"bitloom {kernel}"
        if reason:
            yield Contender(name, reason=reason)
            continue
        try:
            run = gpu.Prepared(plan(layer, words, kernel=kernel))
        except ValueError as e:  # the GPU lacks this kernel
            yield Contender(name, reason=str(e))
            continue
        import cupy

        source = cupy.asarray(words)
        output = run(source)
        yield Contender(name, runs=[lambda run=run, source=source, output=output: run(source, output)])


def _torch_candidates(device: str, shape: Shape, x: np.ndarray, weight: np.ndarray) -> Iterator[Contender]:
    reason = torch_conv.missing() if device == "cpu" else torch_conv.no_cuda()
    for number in torch_conv.FORMATS[device]:
        candidate = Contender(f"torch {number}", x.size * BYTES[number], weight.size * BYTES[number], reason=reason)
        if not reason:
            try:
                candidate.runs = torch_conv.convolutions(number, x, weight, shape.padding, device)
                for run in candidate.runs:
                    run()
            except RuntimeError as e:
                candidate.runs, candidate.reason = (), str(e).splitlines()[0]
        yield candidate


Timed = Callable[[Callable[[], Any], int], float]
"""(what to run, how often) -> milliseconds a time."""


def _time(candidates: Sequence[Contender], rounds: int, timed: Timed) -> None:
    """Fill in the times of every run, in turns."""
    for candidate in candidates:
        candidate.times = [[] for _ in candidate.runs]
    runs = [(run, times) for c in candidates for run, times in zip(c.runs, c.times)]
    often = []
    for run, _ in runs:
        often.append(max(1, round(1000 * ROUND_SECONDS / max(timed(run, 1), 1e-3))))  # warms up, too
    for _ in range(rounds):
        for (run, times), count in zip(runs, often):
            if sum(times) * count < 1000 * RUN_SECONDS:
                times.append(timed(run, count))


def _timed_cpu(run: Callable[[], Any], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count * 1000


def _timed_cuda(run: Callable[[], Any], count: int) -> float:
    """By events of the stream that PyTorch and CuPy share where nobody chose another one."""
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / count


def _gpu_name() -> str:
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())
