"""Generated Verilog explains itself: headers, ports, named constants, short lines, data registers without reset."""

import re
from functools import lru_cache
from typing import get_args

import pytest
from pyverilog.vparser import ast
from veriloggen import Cat, Repeat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.check.scope import DeclaredSignal, Scope
from bitloom.hls_gen.check.verilog import parse
from bitloom.hls_gen.design.dma import Dma
from bitloom.hls_gen.rtl.cores import core_verilog
from bitloom.hls_gen.rtl.dma.dma import dma_core
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.packetizer.packetizer import packetizer
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.block import width as width_of
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.hls_gen.rtl.primitives.parameters import row_width, value_of
from bitloom.hls_gen.rtl.primitives.text import Header, header_lines
from bitloom.hls_gen.rtl.primitives.writer import _writer, module_text
from bitloom.hls_gen.rtl.shell.top import top
from bitloom.hls_gen.rtl.training.generate import training_verilog
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from tests.proofs.catalogue.packetizer import SIZES

from .bench import text_of

CASES: tuple[tuple[str, Target], ...] = (
    ("digits-cnn", "simulation"),
    ("digits-cnn", "synthesis"),
    ("digits-cnn-pipeline", "simulation"),
    ("cifar-quick-int8", "synthesis"),
    ("bnn-int8-ends", "synthesis"),
)
"""Between them all modules but processing elements that collect or know only OR."""
MACHINES = {"training": MachineParameters(slaves=2), "discrete": MachineParameters(slaves=1, products="shifter")}
"""Training machines, without a multiplier where all operands are discrete."""
CORES = {"dma": (dma_core, Dma(stream_bits=64, address_bits=40)), "packetizer": (packetizer, SIZES)}
FIRST_LINE = re.compile(r"// (\w+)\n//\n")
PORT = re.compile(r"^  (?:input|output)(?: reg)?(?: \[[\w*-]+:0\])? (\w+),?$", re.M)


@lru_cache
def generated(name: str, target: Target) -> dict[str, str]:
    reference = REFERENCE_DESIGNS[name]
    return generate(reference.design(name, reference.models()), target=target, checked=False).modules


@pytest.fixture(
    params=[*CASES, *((name, "synthesis") for name in MACHINES), ("dma", "synthesis"), ("packetizer", "synthesis")],
    ids="-".join,
)
def modules(request) -> dict[str, str]:
    name, target = request.param
    if name in CORES:
        return core_verilog(*CORES[name])
    return training_verilog(MACHINES[name], checked=False) if name in MACHINES else generated(name, target)


def header_of(text: str) -> str:
    """The comment before the module."""
    return text[: text.index("\nmodule ") + 1]


@pytest.mark.sample(3)
def test_headers(modules):
    """Name, contract of a sentence at least, rate and latency; nothing but comments."""
    for name, text in modules.items():
        header = header_of(text)
        assert all(line.startswith("//") for line in header.splitlines()), name
        assert FIRST_LINE.match(header)[1] == name
        contract = FIRST_LINE.sub("", header).split("\n//\n")[0]
        assert re.search(r"^// \w+(\W+\w+){4,}[\x22.):]+$", contract, re.S), name
        assert re.search(r"^// Rate: .+\.$", header, re.M), name
        several = name.startswith(("bitloom_top", "npu", "training_top", "master"))  # each of their parts has one
        latency = r"that of the \w+" if several else r".*\d cycle"
        assert re.search(rf"^// Latency: {latency}", header, re.M), name
        assert re.search(r"^// Ports:$", header, re.M), name


@pytest.mark.sample(3)
def test_every_port_has_a_meaning(modules):
    for name, text in modules.items():
        ports = PORT.findall(text)
        assert ports, name
        said = re.findall(r"^//   (\w+)  +(\S.+)$", header_of(text).partition("// Ports:\n")[2], re.M)
        assert [port for port, _ in said] == ports, name


def test_says_nothing_of_the_machine(modules):
    """No paths, no dates."""
    assert not re.search(r"(^|\s)/\w|[A-Z]:\\|\b20\d\d\b", "\n".join(map(header_of, modules.values())))


def always_blocks(text: str) -> list[str]:
    """Bodies of ``always @(posedge clk)``."""
    return re.findall(r"^  always @\(posedge clk\) begin\n(.*?)^  end$", text, re.M | re.S)


def test_data_registers_stand_outside_of_reset(modules):
    """The branch of no reset sets the registers that the reset sets."""
    registers = 0
    for name, text in modules.items():
        for body in always_blocks(text):
            match = re.match(r"    if \(rst\) begin\n(.*?)^    end else begin\n(.*)^    end$", body, re.M | re.S)
            assert match or "if (rst)" not in body, name
            if match:
                reset, rest = (set(re.findall(r"^\s+(\w+)(?:\[.*?\])? <= ", part, re.M)) for part in match.groups())
                assert rest <= reset, (name, rest - reset)
                registers += 1
    assert registers > 3


def always(block: Block) -> str:
    """The always blocks of a module, a space for every gap."""
    block.m.resolve_hook()
    return " ".join(module_text(block.m).partition("always")[2].split())


def test_a_wire_is_declared_where_it_gets_its_value_unless_it_is_read_before():
    b = Block("wires", clocked=False)
    a = b.input("a", 8)
    early, late = b.wire("early", 8), b.wire("late", 8)
    b.output("y", 8, early)
    late.assign(a)
    early.assign(~late)
    text = " ".join(module_text(b.m).split())
    assert "wire [7:0] early; assign y = early; wire [7:0] late = a; assign early = ~late; endmodule" in text


def test_localparams_are_used_and_stand_first(modules):
    for name, text in modules.items():
        body = text[text.index(");\n") :]
        names = re.findall(r"^  localparam (?:\[[\w-]+:0\] )?(\w+) = [^;]+;$", body, re.M)
        assert len(names) == len(set(names)) == body.count("localparam"), name
        assert all(n.isupper() and len(re.findall(rf"\b{n}\b", body)) > 1 for n in names), name
        after = body.split("localparam")[-1]
        assert not names or body.index("localparam") < re.search(r"^  (wire|reg|assign|always)", body, re.M).start()
        assert "localparam" not in after, name


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", get_args(Target))
def test_printing_changes_the_form_alone(target: Target):
    """Signals with their widths, assignments, instances and always blocks are those of what Veriloggen writes."""
    reference = REFERENCE_DESIGNS["digits-cnn"]
    block = top(reference.design("digits-cnn", reference.models()), "0" * 64, target)
    plain, ours = parse(block.m.to_verilog()), parse(text_of(block))
    assert plain.keys() == ours.keys()
    for name in plain:
        assert contents(plain[name].node) == contents(ours[name].node)


def contents(module: ast.ModuleDef) -> tuple[dict[str, DeclaredSignal], dict[str, str], list[str]]:
    """Signals and assignments of a module by name, and the text of all else, in order."""
    write = _writer()
    assigned = {}
    others = []
    for item in module.items:
        for part in getattr(item, "list", (item,)):
            if isinstance(part, ast.Assign):
                assigned[write.visit(part.left)] = write.visit(part.right)
            elif not isinstance(item, ast.Decl):
                others.append(write.visit(part))
    return Scope(module).signals, assigned, others


@pytest.mark.parametrize("first", ["verilator lint_off", "synthesis translate_off", "caf\xe9"])
def test_a_comment_gives_no_orders_to_tools(first):
    message = f"m: a comment must be printable ASCII and begin with no tool's name, got {'// ' + first!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        header_lines("m", Header(first, "one", "1 cycle"), [])


def test_a_module_of_two_others_is_complete_once():
    """Its registers and what is said of them, and all as it is written alone."""
    shared = Block("shared")
    shared.on(shared.input("take"), (shared.output_reg("y", 3), shared.input("d", 3)), (shared.reg("z", init=None), 1))
    whole = Block("whole")
    for name in ("left", "right"):
        between = Block(name)
        ports = {port: between.input(port, w) for port, w in (("take", 1), ("d", 3))}
        between.instance(shared, "inner", **ports, y=between.output("y", 3))
        ports = {port: whole.input(f"{name}_{port}", w) for port, w in (("take", 1), ("d", 3))}
        whole.instance(between, name, **ports, y=whole.output(f"{name}_y", 3))
    shared.m.resolve_hook()
    alone = module_text(shared.m)
    modules = whole.modules()
    assert list(modules) == ["whole", "left", "shared", "right"]
    assert modules["shared"].split() == alone.split()
    assert [modules["shared"].count(f"// {kind} registers") for kind in ("Control", "Data")] == [1, 1]
    assert module_text(shared.m) == alone
    assert whole.modules() == modules


def test_a_module_without_reset_has_no_first_values():
    message = "plain.x: a register with a first value needs a module with reset"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Block("plain", reset=False).reg("x")


@pytest.mark.parametrize("value", [-1, 8])
def test_a_localparam_fits_its_width(value):
    block = Block("counter")
    block.localparam("LAST", 7, 3)
    with pytest.raises(ValueError, match=f"^counter: localparam NEXT must fit 3 bits, got {value}$"):
        block.localparam("NEXT", value, 3)


@pytest.mark.parametrize(("value", "bits"), [(6, 3), (7, 4)])
def test_a_localparam_has_one_value(value, bits):
    block = Block("counter")
    assert block.localparam("LAST", 7, 3) is block.localparam("LAST", 7, 3)
    message = f"counter: localparam LAST must have one value, got 7 of 3 bits and {value} of {bits} bits"
    with pytest.raises(ValueError, match=f"^{message}$"):
        block.localparam("LAST", value, bits)


def test_parameters():
    """They stand in front of the ports; an instance sets them; ports are as wide as its values say."""
    b = Block("rows", clocked=False)
    width = b.parameter("WIDTH", 8, "bits of a row")
    depth = b.parameter("DEPTH", 16, "rows")
    address = b.parameter("ROW_WIDTH", row_width(depth), "bits of a row's number")
    b.output("y", width, b.input("x", width))
    b.input("row", address)
    sized = b.sized(WIDTH=3, DEPTH=17)
    assert b.port_widths == {"x": 8, "y": 8, "row": 4}
    assert sized.port_widths == {"x": 3, "y": 3, "row": 5}
    whole = Block("whole", clocked=False)
    whole.instance(sized, "some", x=whole.input("x", 3), y=whole.output("y", 3), row=whole.input("row", 5))
    text = whole.modules()
    assert "  rows #(.WIDTH(3), .DEPTH(17)) some (\n" in text["whole"]
    assert text["rows"].startswith(
        "module rows #(\n  parameter WIDTH = 8,\n  parameter DEPTH = 16,\n"
        "  parameter ROW_WIDTH = (DEPTH > 1) ? $clog2(DEPTH) : 1\n) (\n  input [WIDTH-1:0] x,\n"
    )
    with pytest.raises(ValueError, match=r"^rows: a parameter must be one of WIDTH, DEPTH, ROW_WIDTH, got WORDS$"):
        b.sized(WORDS=3)
    with pytest.raises(TypeError, match=r"^width of x is known in instances only$"):
        width_of(b.m.io_variable["x"])


@pytest.mark.parametrize(("depth", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6), (65, 7)])
def test_values_of_expressions(depth, bits):
    words = Block("m").parameter("WORDS", 1, "words")
    assert value_of(row_width(words), {"WORDS": depth}) == bits
    assert value_of(2 * words + 1 - words, {"WORDS": depth}) == depth + 1
    with pytest.raises(TypeError, match=r"^value of Xor is unknown$"):
        value_of(words ^ 1, {"WORDS": depth})


def test_bits_side_by_side_are_one_part():
    b = Block("joined", clocked=False)
    a, c = b.input("a", 8), b.input("c", 4)
    b.output("falling", 4, Cat(a[5], a[4], a[2:4]))
    b.output("rising", 2, Cat(a[0], a[1]))
    words = b.memory("words", 4, 8)
    b.output("of_words", 8, Cat(words[3], words[2]))
    b.output("repeated", 8, Cat(Repeat(a[7], 4), a[7], c[0:3]))
    text = module_text(b.m)
    assert "assign falling = a[5:2];" in text
    assert "assign rising = { a[0], a[1] };" in text
    assert "assign of_words = { words[3], words[2] };" in text
    assert "assign repeated = { { 4{ a[7] } }, a[7], c[2:0] };" in text
