"""Build a model with Verilator and g++ alone, and check Verilog with lint.

Verilator writes C++; this module compiles it with g++ itself. It needs no perl and no make, so the wheel from PyPI is
enough.

A build is looked up under a key that covers everything it is made from: the Verilog text, harness.cpp and bench.h, the
versions of Verilator and of the compiler, and all flags. It lives in ``$BITLOOM_CACHE``, ``$XDG_CACHE_HOME/bitloom`` or
``~/.cache/bitloom``:

    runtime/<key>/*.o      one of Verilator's own C++ files, compiled once for all designs
    runtime/<key>/*.gch    its headers, likewise
    model/<key>/model.so   one design with the harness

Any number of processes may ask for the same model: one builds it, the others wait. golden/kernels/cache.py keeps the
cache within its size.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from bitloom.golden.atomic import write_scratch
from bitloom.golden.kernels.cache import cache_root, cached_folder
from bitloom.golden.kernels.native import BuildError, Compiler, digest, find_compiler, read_written, run_tool
from bitloom.golden.names import check_identifier
from bitloom.hls_gen.design.design import STREAM_WIDTHS
from bitloom.hls_gen.design.manifest import TOP
from bitloom.overlay.steps import step

from .fst import check_headers
from .tokens import without_comments
from .verilator_install import Verilator, find_verilator

HARNESS = Path(__file__).with_name("harness.cpp")
BENCH = Path(__file__).with_name("bench.h")
FST_CHECKS = Path(__file__).with_name("fst_checks.h")
PREFIX = "Vtop"  # the C++ class of the model
VERILATE_FLAGS = ("-Wno-fatal", "-Wno-lint", "-Wno-style", "-O3", "--x-assign", "fast", "--x-initial", "fast")
COMPILE_FLAGS = ("-std=gnu++17", "-fPIC", "-fvisibility=hidden", "-w")
MAKE_JSON_SINCE = (5, 34)
"""First version of Verilator that lists the files it writes."""
TRACE_FLAGS: dict[str, list[str]] = {"": [], "vcd": ["--trace"], "fst": ["--trace-fst"]}
"""Options of Verilator by the kind of waveform; "" is none."""
UNIT_BYTES = 200_000
"""Bytes of C++ that are compiled as one unit where a design has several."""
WHOLE_BYTES = 700_000
"""A design with no more C++ than this is one unit: reading Verilator's headers again costs more than a second processor
saves."""
OPTIMISE = "BITLOOM_OPTIMISE"
"""Environment variable: how g++ optimises what runs every cycle, 0 to 3. At 0 models compile faster, and run slower."""
SLOW = "-O0"  # code that runs once (constructors, tracing)
RUNTIME = "-O1"  # Verilator's own files
RUNTIME_HOOKS = ("-DVL_USER_FATAL", "-DVL_USER_STOP", "-DVL_USER_FINISH")  # harness.cpp throws instead of abort()


def _compile(compiler: Compiler, jobs: Sequence[tuple[Path, Path, Sequence[str]]], cwd: Path) -> None:
    """Run jobs of (source, object, flags), as many at a time as there are processors."""

    def compile_job(job: tuple[Path, Path, Sequence[str]]) -> None:
        source, target, flags = job
        run_tool([compiler.program, *flags, "-c", source, "-o", target], f"{compiler.program} {source.name}", cwd=cwd)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(compile_job, jobs))


def _defines(trace: str) -> list[str]:
    """Macros that Verilator's own makefile would define, as options of the compiler."""
    unused = ("COVERAGE", "SC", "TIMING", "TRACE_SAIF")
    traced = {"TRACE": trace, "TRACE_VCD": trace == "vcd", "TRACE_FST": trace == "fst"}
    return [
        "-DVERILATOR=1",
        *(f"-DVM_{name}=0" for name in unused),
        *(f"-DVM_{name}={int(bool(on))}" for name, on in traced.items()),
        *RUNTIME_HOOKS,
    ]


def _base_flags(verilator: Verilator, compiler: Compiler, trace: str) -> list[str]:
    """Flags for all C++ files of a model."""
    include = verilator.include
    return [*COMPILE_FLAGS, *compiler.flags, *_defines(trace), f"-I{include}", f"-I{include / 'vltstd'}"]


def _runtime(verilator: Verilator, compiler: Compiler, sources: Sequence[Path]) -> list[Path]:
    """Objects of Verilator's own C++ files, compiled once for all models; none of them asks for VM_TRACE."""
    base = [*_base_flags(verilator, compiler, ""), RUNTIME]

    def compile_source(source: Path) -> Path:
        name = f"{source.stem}.o"
        flags = [*base, "-include", str(FST_CHECKS)] if "fst" in name else base
        key = digest(repr(verilator), repr(compiler), repr(flags), source.name, source.read_bytes())
        return cached_folder("runtime", key, lambda at: _compile(compiler, [(source, at / name, flags)], at)) / name

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(compile_source, sources))


def headers(compiler: Compiler, flags: Sequence[str]) -> list[str]:
    """Flags that let a unit begin with Verilator's headers, compiled once for all units with ``flags``.

    Reading them takes longer than compiling what a small design adds. A unit may add macros that the headers don't use;
    with any other flag besides (-pthread is one) the compiler reads the headers as text, and says nothing.
    """
    folder = _headers(cache_root(), compiler, tuple(flags))
    try:
        os.utime(folder)  # in use: another process that prunes the cache leaves it
    except FileNotFoundError:
        _headers.cache_clear()
        folder = _headers(cache_root(), compiler, tuple(flags))
    return ["-include", str(folder / "headers.h")]


@lru_cache  # the cache compares digests whenever it is asked: for these 70 MB as long as reading the headers
def _headers(root: Path, compiler: Compiler, flags: tuple[str, ...]) -> Path:
    """The folder of headers.h and headers.h.gch, in the cache at ``root``."""

    def build(folder: Path) -> None:
        write_scratch(folder / "headers.h", '#include "verilated.h"\n')
        command = [compiler.program, *flags, "-x", "c++-header", "headers.h", "-o", "headers.h.gch"]
        run_tool(command, f"{compiler.program} headers.h", cwd=folder)

    return cached_folder("runtime", digest("headers", repr(compiler), repr(flags)), build)


def _sources(verilator: Verilator, folder: Path, trace: str) -> tuple[list[Path], list[Path], list[Path]]:
    """Runtime, fast and slow C++ files of what Verilator wrote to ``folder``."""
    listing = folder / f"{PREFIX}.json"
    if listing.is_file():
        named = read_written(listing)["sources"]
        runtime = [Path(name) for name in named["global"]]
        fast = [Path(name) for kind in ("classes_fast", "support_fast") for name in named.get(kind, [])]
        slow = [Path(name) for kind in ("classes_slow", "support_slow") for name in named.get(kind, [])]
    else:  # an older Verilator: by the naming convention
        names = ["verilated.cpp", "verilated_threads.cpp", *([f"verilated_{trace}_c.cpp"] if trace else [])]
        runtime = [verilator.include / name for name in names]
        written = sorted(folder.glob("*.cpp"))
        slow = [path for path in written if "Slow" in path.name]
        fast = [path for path in written if "Slow" not in path.name]
    return runtime, [folder / path for path in fast], [folder / path for path in slow]


def _units(folder: Path, name: str, sources: Sequence[Path], most: int = UNIT_BYTES) -> list[Path]:
    """Files that include ``sources`` by their names alone, up to ``most`` bytes of them each.

    Verilator's headers take over a second to compile. So a small design is one unit, and a big one is many, for many
    processors.
    """
    groups: list[list[Path]] = []
    room = 0
    for path in sources:
        size = path.stat().st_size
        if size > room:
            groups.append([])
            room = most
        groups[-1].append(path)
        room -= size
    units = []
    for i, group in enumerate(groups):
        units.append(folder / f"{name}_{i}.cpp")
        write_scratch(units[-1], "".join(f'#include "{path.name}"\n' for path in group))
    return units


def optimisation() -> str:
    """The option of g++ for what runs every cycle: ``-O1`` (``-O2`` is no faster), or as the variable OPTIMISE says."""
    level = os.environ.get(OPTIMISE, "1")
    if level not in ("0", "1", "2", "3"):
        raise ValueError(f"{OPTIMISE}: must be 0, 1, 2 or 3, got {level!r}")
    return f"-O{level}"


def _levels(folder: Path, fast: Sequence[Path], slow: Sequence[Path], level: str) -> list[tuple[Path, str]]:
    """Units of a model with the harness, and how each is optimised: those that run every cycle at ``level``."""
    units = [(path, level) for path in _units(folder, "whole", [*fast, HARNESS, *slow], WHOLE_BYTES)]
    if len(units) > 1:
        units = [(path, level) for path in _units(folder, "fast", [*fast, HARNESS])]
        units += [(path, SLOW) for path in _units(folder, "slow", slow)]
    return units


def _link(compiler: Compiler, folder: Path, objects: Sequence[Path], trace: str) -> None:
    """Make model.so in ``folder``, and leave nothing else there."""
    libraries = ["-llz4", "-lz"] if trace == "fst" else []
    run_tool([compiler.program, "-shared", "-o", "model.so", *objects, "-pthread", *libraries], "linking", cwd=folder)
    for path in folder.iterdir():
        if path.name != "model.so":
            path.unlink()


def build_model(
    verilog: str, *, top: str = TOP, stream_bits: int = 32, trace: bool | str = False, dma: bool = False
) -> Path:
    """Compile a design, or find it in the cache.

    Parameters
    ----------
    verilog
        The whole design as text. Verilator gets it without its comments. The text may do whatever Verilog can do on
        this computer: text from a file must be read by ``read_simulation_overlay``, which checks it.
    top
        Name of the top module, whose ports are those of docs/reference/device.md.
    stream_bits
        Width of both streams, 32 or 64.
    trace
        Whether to build with tracing, which makes the model slower: True and "vcd" for a VCD file, "fst" for an FST
        file, which needs the headers of zlib and lz4.
    dma
        Whether the top module is ``bitloom_system`` (hls_gen/rtl/dma/system.py).

    Returns
    -------
    Path
        The shared object, for ``Simulation``.

    Raises
    ------
    BuildError
        If a tool is missing or refuses the design.
    ValueError
        If ``stream_bits`` is neither 32 nor 64, ``top`` is no name of a module, or OPTIMISE is set to something else
        than 0 to 3.
    """
    check_identifier("model: top", top)
    if stream_bits not in STREAM_WIDTHS:
        raise ValueError(f"model: stream_bits must be 32 or 64, got {stream_bits!r}")
    verilator = find_verilator()
    compiler = find_compiler()
    trace = "vcd" if trace is True else trace or ""
    if trace == "fst":
        check_headers(compiler)
    harness_flags = [f"-DSTREAM_BITS={stream_bits}", f"-DTRACE={int(bool(trace))}", f"-DDMA={int(dma)}"]
    listing = ["--make", "json"] if verilator.version >= MAKE_JSON_SINCE else []
    options = [*VERILATE_FLAGS, *TRACE_FLAGS[trace], *listing]
    flags = _base_flags(verilator, compiler, trace)
    level = optimisation()
    tools = repr((verilator, compiler, options, flags, harness_flags, UNIT_BYTES, WHOLE_BYTES, RUNTIME, level, SLOW))
    verilog = without_comments(verilog)
    key = digest(verilog, *(path.read_bytes() for path in (HARNESS, BENCH, FST_CHECKS)), top, tools)

    def build(folder: Path) -> None:
        source = folder / f"{top}.v"
        write_scratch(source, verilog if verilog.endswith("\n") else verilog + "\n")  # 5.006 drops an unended last line
        command = [verilator.program, "--cc", "--prefix", PREFIX, "--top-module", top, "-Mdir", ".", *options]
        with step(f"{top} to C++ by Verilator"):  # relative names: it can't read a path with a quotation mark
            run_tool([*command, source.name], "Verilator", env=verilator.environment, cwd=folder)
        runtime, fast, slow = _sources(verilator, folder, trace)
        base = [*flags, *harness_flags, f"-I{folder}", f"-I{HARNESS.parent}"]
        included = {level: headers(compiler, [*flags, level])}
        jobs = [
            (path, path.with_suffix(".o"), [*base, each, *included.get(each, [])])
            for path, each in _levels(folder, fast, slow, level)
        ]
        runtime_objects = _runtime(verilator, compiler, runtime)
        with step(f"compiling {len(jobs)} files of C++"):
            _compile(compiler, jobs, folder)
        _link(compiler, folder, [*(target for _, target, _ in jobs), *runtime_objects], trace)

    return cached_folder("model", key, build) / "model.so"


def lint(verilog: str, *, top: str | None = TOP) -> list[str]:
    """Messages of ``verilator --lint-only -Wall`` about a design. Nothing is switched off.

    Each module becomes a file, as a build writes them; directives in front of the first module go into every file.

    Parameters
    ----------
    verilog
        The whole design as text.
    top
        Name of the top module; None lets Verilator find it.

    Returns
    -------
    list
        A line for each message; empty if the design is clean.

    Raises
    ------
    BuildError
        If Verilator is missing, or fails without a message.
    """
    verilator = find_verilator()
    chosen = ["--top-module", top] if top else []
    with tempfile.TemporaryDirectory(prefix="bitloom-lint-") as folder:
        matches = list(re.finditer(r"^module\s+(\w+)", verilog, re.M))
        begins = [m.start() for m in matches] or [0]
        head = verilog[: begins[0]]
        names = [m.group(1) for m in matches] or [top or "design"]
        for name, begin, end in zip(names, begins, [*begins[1:], len(verilog)]):
            write_scratch(Path(folder) / f"{name}.v", head + verilog[begin:end])
        files = [f"{name}.v" for name in names]
        command = [verilator.program, "--lint-only", "-Wall", "-Wno-fatal", *chosen, *files]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env=verilator.environment
        )
    messages = [line for line in done.stderr.splitlines() if line.startswith("%")]
    if done.returncode and not messages:
        raise BuildError(f"{verilator.program} --lint-only failed (exit status {done.returncode}): {done.stderr[:400]}")
    return [line for line in messages if not line.startswith("%Error: Exiting due to")]
