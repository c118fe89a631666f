"""Speed and memory of the packed binary convolution beside PyTorch's convolutions, on one machine in one run.

What is timed is a layer between layers: packed words in, thresholds, packed words out, which the next layer reads as
they are. So packing is no part of it; it is a row of its own. PyTorch's convolution has no activation behind it and
gets its input in the order of memory in which it is faster (overlay/study/torch_conv.py). It uses as many threads as we
do.

On a GPU calls are launched as a graph, so that what is timed is the GPU's part and not the processor's, which takes
longer than a small layer does.

All implementations of a shape and batch are warmed up and then run in turn, again and again, so that a disturbance
meets all of them; ms is the median. Every output of ours is compared with PyTorch's, bit for bit, before it is timed.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bitloom.driver.predictor import Progress
from bitloom.golden.kernels.tiled import cpu, gpu

from . import torch_conv
from .contenders import Contender, ConvShape, contenders

BATCHES = (1, 32)
ROUNDS = 15
"""Rounds of which the median is taken."""
ROUND_SECONDS = 0.01
"""Seconds; an implementation that is faster than this is called several times a round."""
RUN_SECONDS = 5
"""Seconds after which an implementation takes part in no further round: its median is then of fewer rounds."""
GRAPH_CALLS = 20
"""Calls that a GPU's graph has."""
BASELINE = "torch fp32"
"""Baseline of speed-ups."""

TimedRow = dict[str, Any]


def measure(
    device: str,
    *,
    chosen: Sequence[ConvShape],
    batches: Sequence[int] = BATCHES,
    rounds: int = ROUNDS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[TimedRow]:
    """Time all implementations of each shape and batch.

    Parameters
    ----------
    device
        "cpu" or "cuda".
    chosen
        Of ``shapes``.
    batches
        Numbers of images.
    rounds
        Rounds of which the median is taken, 1 at the least.
    threads
        Processors to use; None: all.
    progress
        Called with (shapes and batches done, all of them).

    Returns
    -------
    list
        A row for each shape, batch and implementation: ``shape``, ``batch``, ``implementation``, ``ms``,
        ``speedup_vs_torch_fp32``, ``input_bytes``, ``weight_bytes``, ``device``, ``threads``, and ``reason``: why ms is
        None, else "".

    Raises
    ------
    ValueError
        If ``device`` or ``rounds`` is none of the above.
    """
    if device not in torch_conv.FORMATS:
        raise ValueError(f"bench: device must be one of {', '.join(torch_conv.FORMATS)}, got {device!r}")
    if rounds < 1:
        raise ValueError(f"bench: rounds must be >= 1, got {rounds}")
    threads = cpu.processors() if threads is None else threads
    torch_conv.set_threads(threads)
    cases = [(shape, batch) for shape in chosen for batch in batches]
    name = machine(device)
    rows: list[TimedRow] = []
    for number, (shape, batch) in enumerate(cases, 1):
        compared = list(contenders(device, shape, batch, threads))
        if device == "cuda":
            for contender in compared:
                contender.runs = [_graph(run) for run in contender.runs]
        time_in_turns(compared, rounds, _timed_cpu if device == "cpu" else _timed_cuda)
        common = {"shape": str(shape), "batch": batch, "device": name, "threads": threads}
        rows += _rows(compared, common)
        if progress is not None:
            progress(number, len(cases))
    return rows


def _rows(compared: Sequence[Contender], common: TimedRow) -> list[TimedRow]:
    """A row for each implementation of a shape and batch, with the values in ``common``."""
    baseline = next(c.ms for c in compared if c.implementation == BASELINE)
    return [
        {
            "shape": common["shape"],
            "batch": common["batch"],
            "implementation": c.implementation,
            "ms": c.ms,
            "speedup_vs_torch_fp32": baseline / c.ms if baseline and c.ms else None,
            "input_bytes": c.input_bytes,
            "weight_bytes": c.weight_bytes,
            "device": common["device"],
            "threads": common["threads"],
            "reason": c.reason,
        }
        for c in compared
    ]


def machine(device: str) -> str:
    """Name of the processor or the GPU, and version of PyTorch."""
    if device == "cuda":
        processor = "no GPU" if gpu.missing() else _gpu_name()
    else:
        listing = Path("/proc/cpuinfo")
        lines = listing.read_text().splitlines() if listing.is_file() else []
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = f"{models[0] if models else 'CPU'}, path {cpu.paths()[0]}"
    return f"{processor}, PyTorch {torch_conv.version() or 'missing'}"


Timed = Callable[[Callable[[], Any], int], float]
"""Milliseconds of one call, of what is called so many times."""


def _timed_cpu(run: Callable[[], Any], count: int) -> float:
    """By the system's clock."""
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count * 1000


def time_in_turns(compared: Sequence[Contender], rounds: int, timed: Timed = _timed_cpu) -> None:
    """Fill in the times of every run, in turns."""
    for contender in compared:
        contender.times = [[] for _ in contender.runs]
    runs = [(run, times) for c in compared for run, times in zip(c.runs, c.times)]
    often = []
    for run, _ in runs:
        often.append(max(1, round(1000 * ROUND_SECONDS / max(timed(run, 1), 1e-3))))  # warms up, too
    for _ in range(rounds):
        for (run, times), count in zip(runs, often):
            if sum(times) * count < 1000 * RUN_SECONDS:
                times.append(timed(run, count))


def _graph(run: Callable[[], Any]) -> Callable[[], None]:
    """``GRAPH_CALLS`` calls as a graph, whose launch costs the processor nothing that would show in the GPU's time."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, torch_conv.in_stream(stream.ptr):
        run()  # compiles, chooses an algorithm, reserves memory: none of it may happen in a graph
        stream.synchronize()
        stream.begin_capture()
        for _ in range(GRAPH_CALLS):
            run()
        graph = stream.end_capture()
    return lambda: graph.launch()


def _timed_cuda(launch: Callable[[], Any], count: int) -> float:
    """By events of the stream in which graphs are launched, as many as have ``count`` calls."""
    import cupy

    begin = cupy.cuda.Event()
    end = cupy.cuda.Event()
    launches = -(-count // GRAPH_CALLS)
    begin.record()
    for _ in range(launches):
        launch()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / (launches * GRAPH_CALLS)


def _gpu_name() -> str:
    """Name of the current GPU."""
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())
