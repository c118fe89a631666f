"""Costs of a large network: to build, in its file, and on the host for each frame.

    python -m tests.large_figures mobilenet pynq-z1
    python -m tests.large_figures resnet18 zcu104

Times are processor times of this machine; the host's are those of numpy, for one frame that goes through all programs.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bitloom.driver.host_maps import held_dtype
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.evaluation.hardware import cycles_by_flow
from tests.large_networks import STREAM_BITS, built
from tests.memory import peak_mb
from tests.paths import ROOT

READ = """
import sys
from bitloom.hls_gen.design.partitioned_program import read_program
from tests.memory import peak_mb
before = peak_mb()
read_program(sys.argv[1])
print(peak_mb() - before)
"""
TRIES = 3


def megabytes_to_read(network: CompiledNetwork[Program], path: Path) -> float:
    """Memory that a process takes more when it has read the network's file, which is written to ``path``."""
    network.save(path)
    command = [sys.executable, "-c", READ, str(path)]
    return float(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


def milliseconds(act: Callable[[], object]) -> float:
    """Processor time of the fastest of some tries."""
    best = float("inf")
    for _ in range(TRIES):
        begin = time.process_time()
        act()
        best = min(best, time.process_time() - begin)
    return 1000 * best


def host_times(network: CompiledNetwork[Program]) -> tuple[float, float]:
    """Milliseconds to pack all maps of a frame, and to unpack all results."""
    rng = np.random.default_rng(0)
    packing = unpacking = 0.0
    for program in network.programs:
        source = program.input
        shape = (1, *source.shape)
        values = rng.integers(source.encoding.low, source.encoding.high + 1, shape).astype(held_dtype(source))
        words = rng.integers(0, 1 << 32, program.result_words, dtype=np.uint32)
        packing += milliseconds(lambda values=values, program=program: program.pack_images(values))
        unpacking += milliseconds(lambda words=words, program=program: program.unpack_results(words))
    return packing, unpacking


def main(name: str, board_name: str) -> None:
    begin = time.process_time()
    large = built(name, board_name)
    area = estimate(large.design)
    print(f"build: {time.process_time() - begin:.0f} s, {peak_mb():.0f} MB")
    print(f"LUT: {area.device_lut:,}; BRAM36: {area.bram36:g}; DSP: {area.dsp}; fits: {large.board.holds(area)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.program.npz"
        more = megabytes_to_read(large.network, path)
        size = path.stat().st_size / 1e6
        begin = time.process_time()
        network = read_program(path)
        seconds = time.process_time() - begin
    print(f"programs: {len(network.programs)}; file: {size:.1f} MB, read in {seconds:.2f} s and {more:.0f} MB")
    packing, unpacking = host_times(network)
    print(f"a frame on the host: {packing:.1f} ms to pack maps, {unpacking:.1f} ms to unpack results")
    words = sum(program.parameters.size for program in network.programs) * 32 // STREAM_BITS
    cycles = cycles_by_flow(large.model, large.design, large.choices).cycles_per_frame
    print(f"stream words of all parameters: {words:,}; cycles of a frame by the flow model: {cycles:,.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
