"""Tables of a design for the hand-written scripts in files/: design.tcl, design.mk, and core.tcl, with one more for
each core beside the device.

The scripts hold the steps, and these tables hold the data.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from bitloom.overlay.platform.block_design import BlockDesign, access
from bitloom.overlay.platform.boards import Board

from .core import IpCore, cores_beside

LINE = 120
"""Characters of a line at most."""
HEADER = "# Written by bitloom for {name}, digest {digest}.\n"


def word(value: object) -> str:
    """A value as one word of Tcl."""
    text = str(value)
    if re.fullmatch(r"[\w.:/+*,-]+", text, re.ASCII):
        return text
    if not set(text) & set("{}\\") or _is_list(text):
        return "{" + text + "}"
    return "".join("\\n" if c == "\n" else c if c.isalnum() else "\\" + c for c in text)


def make_value(text: str) -> str:
    """A value in a makefile; ValueError for what would need more than doubled ``$`` to be read as it is."""
    if not text.isprintable() or set(text) & set("#\\") or text != text.strip():
        rule = "must be printable and have no #, no \\ and no blank at an end"
        raise ValueError(f"makefile: a value {rule}, got {text!r}")
    return text.replace("$", "$$")


def _is_list(text: str) -> bool:
    """Whether braces can stand around ``text``, which has some itself."""
    depth = 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if depth < 0 or c == "\\":
            return False
    return depth == 0


def words(values: Iterable[object]) -> str:
    """Values as a list of Tcl, on one line."""
    return " ".join(word(value) for value in values)


def flat(values: Mapping[str, object]) -> str:
    """A mapping as a dictionary of Tcl, on one line."""
    return words(part for pair in values.items() for part in pair)


def table(name: str, columns: str, rows: Iterable[Sequence[object]]) -> str:
    """A Tcl variable that holds a list of rows, under a comment that names the columns.

    A mapping in a row becomes a dictionary.
    """
    return f"\n# {columns}\nset {name} {{\n{''.join(map(_row, rows))}}}\n"


def _row(row: Sequence[object]) -> str:
    """A row. One that is too long for a line has lines for its words, and for the words of a dictionary in it."""
    parts = ["{" + flat(value) + "}" if isinstance(value, Mapping) else word(value) for value in row]
    line = f"    {{{' '.join(parts)}}}\n"
    if len(line) <= LINE:
        return line
    lines = []
    for value, part in zip(row, parts):
        long = isinstance(value, Mapping) and "{" not in part[1:]
        inner = textwrap.wrap(part, LINE - 9, break_long_words=False, break_on_hyphens=False) if long else [part]
        lines += [inner[0], *(f" {text}" for text in inner[1:])]
    return "    {\n" + "".join(f"        {text}\n" for text in lines) + "    }\n"


def scalars(values: Mapping[str, object]) -> str:
    """Tcl variables, one a line."""
    return "".join(f"set {name} {word(value)}\n" for name, value in values.items())


def design_tcl(design: BlockDesign, programs: Sequence[str]) -> str:
    """The block design, for build.tcl; ``programs`` are the names of the files with compiled networks."""
    ps = design.processor
    board = _board(design)
    text = HEADER.format(name=design.name, digest=design.digest)
    text += "# The block design: package_ip.tcl and build.tcl read it.\n\n" + scalars(
        {
            "name": design.name,
            "board": board.name,
            "board_part": board.board_part,
            "board_files_from": board.board_files,
            "part": board.part,
            "clock_mhz": f"{design.clock_mhz:g}",
            "device_vlnv": design.vlnv,
            "ps": ps.instance,
            "ps_rule": f"xilinx.com:bd_rule:{ps.module}",
            "ps_automation": flat(ps.automation),
            "ps_clock": ps.clock,
            "ps_clock_parameter": ps.clock_parameter,
            "manifest": f"{design.name}.manifest.json",
            "programs": words(programs),
            "cores": words(f"{name}.tcl" for name in ("core", *cores_beside(design))),
        }
    )
    text += table(
        "cells",
        "instance, IP core (the newest version in Vivado's catalogue is taken), parameters",
        ((cell.instance, cell.vlnv, cell.parameters) for cell in design.cells),
    )
    text += table(
        "links",
        "buses: from a master's interface to a slave's",
        (_pins(link.source, link.target) for link in design.links),
    )
    text += table("nets", "wires: driver, then what it drives", (_pins(net.source, *net.sinks) for net in design.nets))
    return text + table(
        "addresses",
        "interface, base and size in bytes, as the processor sees them",
        (
            (f"{instance}/{design.registers_of[instance]}", f"0x{base:08X}", f"0x{size:X}")
            for instance, (base, size) in design.address_map.items()
        ),
    )


def core_tcl(core: IpCore, design: BlockDesign) -> str:
    """A core, for package_ip.tcl."""
    vendor, library, name, version = core.vlnv.split(":")
    text = HEADER.format(name=design.name, digest=design.digest)
    text += f"# {core.display_name} as an IP core: package_ip.tcl reads it.\n\n" + scalars(
        {
            "core_vendor": vendor,
            "core_library": library,
            "core_name": name,
            "core_version": version,
            "core_display_name": core.display_name,
            "core_description": core.description,
            "core_top": core.top,
            "memory_map": core.memory_map,
            "address_block": core.address_block,
            "space_bytes": core.space_bytes,
        }
    )
    text += table("sources", "Verilog", ((path,) for path in core.files))
    text += table(
        "interfaces",
        "name, bus type, signals, master or slave, {signal port ...}, {parameter value ...}",
        ((i.name, i.bus_type, i.abstraction, i.mode, i.ports, i.parameters) for i in core.interfaces),
    )
    text += table("parameters", "name, value", core.parameters.items())
    text += table(
        "address_spaces",
        "AXI4 master, bytes that it reaches, bits of its words",
        ((name, *size) for name, size in core.address_spaces.items()),
    )
    text += table(
        "registers",
        "name, offset, access, description",
        ((r["name"], f"0x{r['offset']:03X}", access(r)[0], r.get("description", "")) for r in core.registers),
    )
    return text + table(
        "fields",
        "register, name, lowest bit, bits, access, what writing a bit does (empty: stores it), description",
        (
            (r["name"], f["name"], f["lsb"], f["width"], *access(r), f.get("description", ""))
            for r in core.registers
            for f in r.get("fields", ())
        ),
    )


def design_mk(design: BlockDesign) -> str:
    """The text that the Makefile reads."""
    values = {"DESIGN_BOARD": _board(design).name, "DESIGN_CLOCK_MHZ": f"{design.clock_mhz:g}"}
    text = "".join(f"{name} := {make_value(value)}\n" for name, value in values.items())
    return HEADER.format(name=design.name, digest=design.digest) + text


def _pins(*pins: tuple[str, str]) -> list[str]:
    """Pins as Vivado names them."""
    return ["/".join(pin) for pin in pins]


def _board(design: BlockDesign) -> Board:
    """The block design's board; ValueError where it has none."""
    if design.board is None:
        raise ValueError(f"block design {design.name}: sources for a bitstream need a board")
    return design.board
