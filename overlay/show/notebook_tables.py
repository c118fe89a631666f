"""Tables for notebooks. Each function makes one, as text that ``print`` shows."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import Program

from .cpu_time import CpuTime

TableRow = Sequence[Any]


def table(heads: Sequence[str], rows: Iterable[TableRow]) -> str:
    """Columns of text.

    Parameters
    ----------
    heads
        A word or two above each column.
    rows
        A value for each column: numbers stand to the right, with a comma for each thousand, all else to the left.

    Returns
    -------
    str
        A line for the heads and one for each row, without an end of line.
    """
    rows = list(rows)
    cells = [[value if isinstance(value, str) else f"{value:,}" for value in row] for row in rows]
    numbers = [not any(isinstance(row[k], str) for row in rows) for k in range(len(heads))]
    widths = [max(map(len, column)) for column in zip(heads, *cells)]
    lines = (
        [f"{c:>{w}}" if right else f"{c:{w}}" for c, w, right in zip(line, widths, numbers)]
        for line in [list(heads), *cells]
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def cores(overlay: Any) -> str:
    """The cores of a ``pynq.Overlay`` and where they are."""
    rows = ((name, ip["type"], f"0x{ip.get('phys_addr', 0):08X}") for name, ip in overlay.ip_dict.items())
    return table(("core", "type", "address"), rows)


def beats(program: Program) -> str:
    """The layers of a program that the array computes, with their beats."""
    return table(("layer", "beats a frame"), program.layers)


def npus(program: Program, manifest: Manifest) -> str:
    """The NPUs of a pipeline with a layer each, in order."""
    rows = (
        (f"NPU {n}: {layer}", npu.array.kfp, npu.array.kgp, npu.sequencer.tuple_words, count)
        for n, (npu, (layer, count)) in enumerate(zip(manifest.npus, program.layers))
    )
    return table(("NPU", "lanes", "kernels", "words of tuples", "beats a frame"), rows)


def spent(counters: Mapping[str, int], names: Sequence[str]) -> str:
    """Cycles of each NPU by what it did, as ``Accelerator.counters`` says, and their sum."""
    keys = ("beats", "wait_input", "wait_room", "wait_table")
    rows = []
    for n, name in enumerate(names):
        parts = [counters[f"npu{n}_{key}"] for key in keys]
        rows.append((name, *parts, sum(parts)))
    return table(("NPU", *(key.replace("_", " ") for key in keys), "sum"), rows)


def taps(schedule: StageTables, count: int) -> str:
    """The first taps of a stage: place in the kernel, position in the map, and which tuple of the stream that is."""
    rows = []
    for t in range(count):
        position = divmod(int(schedule.input_order[schedule.index[t]]), schedule.stage.width)
        new = "new" if schedule.new[t] else ""
        rows.append((schedule.window[t], schedule.tap[t], str(position), schedule.index[t], new))
    return table(("window", "tap", "reads (row, column)", "tuple", ""), rows)


def orders(figures: Mapping[str, Any]) -> str:
    """Costs of two map orders, as ``map_orders`` gives them: tuples, bits of tables, and all bits as built."""
    rows = [
        (layer["name"], *(layer[order][key] for key in ("tuples", "table_bits") for order in ("pull", "raster")))
        for layer in figures["layers"]
    ]
    heads = ("layer", "tuples: pull", "raster", "bits of tables: pull", "raster")
    bits = {order: figures["totals"][order]["memory_bits"] for order in ("pull", "raster")}
    built = ", ".join(f"{count:,} in {order} order" for order, count in bits.items())
    return f"{table(heads, rows)}\nas built, all bits: {built}; auto takes {figures['auto']}"


def maps(network: Network) -> str:
    """The layers of a chain with the maps that they read and make."""
    rows = (
        (layer.name, str(network.sources(layer)[0].shape), str(network.maps[layer.name].shape))
        for layer in network.layers
    )
    return table(("layer", "reads", "makes"), rows)


def foldings(chosen: Sequence[Npu], mapping: Sequence[int], layers: Sequence[str]) -> str:
    """NPUs with their lanes, and which of the weighted layers each computes."""
    rows = (
        (f"NPU {n}", npu.array.kfp, npu.array.kgp, ", ".join(layer for layer, m in zip(layers, mapping) if m == n))
        for n, npu in enumerate(chosen)
    )
    return table(("NPU", "lanes", "kernels", "layers"), rows)


def modules(folder: Path, count: int = 5) -> str:
    """The longest Verilog files of a folder, and how much there is in all."""
    lines = {path.name: len(path.read_text().splitlines()) for path in sorted(folder.glob("*.v"))}
    longest = sorted(lines.items(), key=lambda item: -item[1])[:count]
    return f"{len(lines)} modules, {sum(lines.values()):,} lines, the longest:\n{table(('module', 'lines'), longest)}"


def memories(npu: Npu, count: int) -> str:
    """The largest memories of an NPU."""
    largest = sorted(memory_map(npu), key=lambda m: -m.depth * m.width)[:count]
    rows = ((m.name, m.depth, m.width, f"{m.depth * m.width / 8192:,.1f}") for m in largest)
    return table(("memory", "rows", "bits a row", "KB"), rows)


def models(networks: Mapping[str, Model]) -> str:
    """Networks of ``golden.zoo`` by name, what they read, and where their weights come from."""
    rows = (
        (name, str(model.network.input.shape), model.network.input.encoding.kind, weights(name))
        for name, model in networks.items()
    )
    return table(("network", "input", "values", "weights"), rows)


def weights(name: str) -> str:
    """Where the weights of a network of ``golden.zoo`` come from, without the folder."""
    return networks.source(name).partition(":")[0]


def beside_cpu(measured: CpuTime, cycles: float, virtual: bool, clock_mhz: float = 100) -> str:
    """A frame on this computer's processor, and on the accelerator at a clock.

    Parameters
    ----------
    measured
        Of ``cpu_time``.
    cycles
        Of the accelerator, a frame.
    virtual
        Whether these come from a simulation; else a board has counted them.
    clock_mhz
        Clock of the accelerator that is assumed.
    """
    how = "simulated" if virtual else "counted by the board"
    seconds = {
        "this CPU: golden's definition, numpy": measured.definition,
        f"this CPU: golden's fast kernels, {measured.kernels_by}": measured.kernels,
        f"accelerator at {clock_mhz:g} MHz, {cycles:,.0f} cycles, {how}": cycles / clock_mhz / 1e6,
    }
    rows = ((name, f"{1e6 * time:,.1f}", f"{1 / time:,.0f}") for name, time in seconds.items())
    return table(("computed by", "us a frame", "frames a second"), rows)
