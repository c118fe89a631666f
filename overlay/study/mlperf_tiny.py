"""The networks of MLPerf Tiny on one design: bit-exactness, cycles and latency, measured in simulation.

Where the benchmark's trained models are in the data folder they are imported (TFLite, 8-bit integers) and get recorded
inputs; elsewhere the same topologies have seeded weights and random inputs (golden/zoo/mlperf_tiny.py). Cycles are the
same either way: they don't depend on values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bitloom.driver.predictor import Progress
from bitloom.golden import zoo
from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny as networks
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import Sizing, sized_design
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.measured import check_even

from .design_figures import FigureTable, network_figures
from .lane_counts import lanes

NAME = "mlperf-tiny"
"""Name of the design."""
INTEGER = {"engine": "integer", "feature_bits": 9, "weight_bits": 8, "shift_bits": 0}
BLOCKS = {
    "kernels_per_multiplier": 2,
    "depthwise": True,
    "pool_line_taps": 3,
    "pool_lane_lines": 2,
    "window_former": True,
    "accumulators": 8,
    "raster": True,
    "lut_products": ("addition", "pool"),
    "pool_scale_ram": "distributed",
}
NPU = Npu.of(kfp=24, line_taps=3, kgp=16, pfp=16, ol=8, acc_bits=32, **BLOCKS, **INTEGER)
"""The design's NPU: 384 lanes on 192 multipliers, a window former for the first layers, and a pool unit with weights.
Array and pool unit take a line of a 3 x 3 kernel in a cycle, the array of 8 channels, the pool unit of 16, or two lines
of 8. Values less their zero point have 9 bits. With 8 accumulators a PE short windows follow each other without a wait.
Of an xc7z020 counters save block RAM for tables of taps; additions, and half of the pool unit's requantisations,
multiply in LUTs for want of DSP blocks, and scales of the pool unit are LUT RAM for want of block RAM."""
BOARD = "Pynq-Z2"
"""The board of the design's device where no other one is named."""
NPUS = {BOARD: NPU, "ZCU104": NPU.changed(kfp=48, kgp=32, pfp=32, ol=16, lut_products=())}
"""By board: the NPU of the design for its device. On a ZCU104 it has 1,536 lanes on 768 multipliers; array and pool
unit take twice as many channels, 16 and 32, and DSP blocks multiply everywhere but for the taps of the pool unit."""
OF_AD = {f"dense_{number}": "input_stationary:4" for number in range(1, 11)}
"""Dataflow of the layers of ad: their words are used as they come, by four kernel groups, of which the results leave
while the next four use the words."""
STREAM_BITS = 64
"""Width of the streams."""
RECORDED = {
    "ic": ("cifar10_test_first761.npz", -128),
    "kws": ("mlperf_tiny/kws_reference.npz", 0),
    "vww": ("mlperf_tiny/vww_reference.npz", 0),
    "ad": ("mlperf_tiny/ad_reference.npz", 0),
}
"""Files of the data folder with inputs ``x``, and the number to add to ``x`` for the model's input."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A network of the benchmark."""

    name: str
    """As the benchmark has it: ic, kws, vww, ad or sww."""
    model: Model
    """The network."""
    images: np.ndarray | None
    """(N, H, W, C) integers or None: recorded inputs; None: there are none."""
    weights: str
    """Where the weights are from."""


def entry(name: str) -> Entry:
    """A network of the benchmark, trained where its file is there.

    Raises
    ------
    ValueError
        If the benchmark has no such network.
    """
    if name not in networks.NETWORKS:
        raise ValueError(f"mlperf-tiny: a network must be one of {', '.join(networks.NETWORKS)}, got {name!r}")
    folder = zoo.data_folder()
    path = folder / networks.FILES[name]
    if not path.is_file():
        return Entry(name, networks.seeded(networks.NETWORKS[name]()), None, "seeded")
    from bitloom.overlay.importers.imported import import_file  # needs the extra "import"

    imported = import_file(path)
    images = None
    recording, added = RECORDED.get(name, ("", 0))
    if recording and (folder / recording).is_file():
        with np.load(folder / recording, allow_pickle=False) as held:
            x = held["x"].astype(np.int64) + added
        images = imported.host.to_input(x, imported.model.network.input.shape)
    return Entry(name, imported.model, images, path.name)


def design_name(npus: Sequence[Npu], board: str = BOARD) -> str:
    """Name of the design with these NPUs, which are like the one for that board."""
    name = NAME if board == BOARD else f"{NAME}-{board.lower()}"
    shape = "ring" if "ring" in npus[0].ports.inlets else "chain"
    return name if len(npus) == 1 else f"{name}-{shape}{len(npus)}"


def choices_for(names: Sequence[str], chunk: str | None = None, npus: Sequence[Npu] = (NPU,)) -> CompileChoices:
    """How these networks are compiled for these NPUs. ResNet-8 (ic) alone has shortcuts with convolutions; on a ring
    they can't come last: a map would have to stay on an NPU. The wakeword network (sww) alone begins with a depthwise
    convolution."""
    return CompileChoices(
        chunk=chunk or "",
        dataflow=OF_AD if "ad" in names else "output_stationary",
        shortcuts="last" if "ic" in names and "ring" not in npus[0].ports.inlets else "first",
        copy_depthwise="sww" in names,
    )


def measure(
    names: Sequence[str],
    frames: int,
    folder: Path,
    progress: Progress | None = None,
    *,
    board: str = BOARD,
    npus: Sequence[Npu] = (),
    chunk: str | None = None,
) -> tuple[list[FigureTable], builds.Build]:
    """Build one design for some networks and run each of them on it.

    Parameters
    ----------
    names
        Networks of the benchmark, in any order, each once.
    frames
        Of the longer batch of each: an even number, 2 at the least.
    folder
        The build goes to ``folder / design_name(npus, board)``.
    progress
        Called with a network's frames done and its frames, after each batch.
    board
        A key of `NPUS`.
    npus
        The design's NPUs, a chain or a ring of several like the board's; none: the board's one.
    chunk
        As `bitloom.hls_gen.compiler.choices.CompileChoices` has it.

    Returns
    -------
    tuple
        Figures of each network, and the build.

    Raises
    ------
    ValueError
        If ``frames`` is no such number.
    """
    check_even("mlperf-tiny", frames)
    entries = [entry(name) for name in names]
    models = [item.model for item in entries]
    npus = npus or (NPUS[board],)
    name = design_name(npus, board)
    choices = choices_for(names, chunk, npus)
    design = sized_design(name, models, npus, choices, STREAM_BITS, Sizing())
    build = builds.build(folder / name, design, models, choices=choices)
    done: list[FigureTable] = []
    for item in entries:
        figures = network_figures(build, [item.model], frames, progress, item.images)
        done.append({"name": item.name, "weights": item.weights, **lanes(build.design), **figures})
    return done, build
