"""Vivado's stand-in as a whole: project, runs and timing on top of packager.py and blocks.py; and a way to run scripts.

It checks syntax and names: commands, options, properties, and names of IP cores, pins and interfaces. It has no opinion
of what Vivado would make of a design.

python -m tests.overlay.platform.vivado.vivado -mode batch -source build.tcl -tclargs 100     as Makefiles call it
"""

import json
import os
import re
import sys
from itertools import pairwise
from pathlib import Path

from bitloom.overlay.platform.boards import BOARDS

from . import tcl
from .blocks import BlockDesigns, core_of
from .catalogue import one_of
from .objects import VivadoError, anything, command, read_only
from .packager import Packager

BOARD_PARTS = (
    "tul.com.tw:pynq-z2:part0:1.0",
    "www.digilentinc.com:pynq-z1:part0:1.0",
    "avnet.com:ultra96v2:part0:1.2",
    "xilinx.com:kv260_som:part0:1.3",
    "xilinx.com:kv260_som:part0:1.4",
    "realdigital.org:aup-zu3-8gb:part0:1.0",
    "xilinx.com:zcu104:part0:1.1",
    "digilentinc.com:zybo-z7-20:part0:1.2",
    "digilentinc.com:arty-z7-20:part0:1.1",
    "digilentinc.com:cora-z7-07s:part0:1.1",
    "xilinx.com:kr260_som:part0:1.1",
    "realdigital.org:rfsoc4x2:part0:1.0",
)
RUN = {"progress": read_only, "status": read_only}


class Vivado(Packager, BlockDesigns):
    """One session.

    board_parts : that it knows.  slack : kind -> ns of the worst path, None: there is no timed path.  progress : of the
    implementation run.  generated : part of the name of the project's folder of generated files.
    """

    def __init__(
        self,
        board_parts: tuple[str, ...] = BOARD_PARTS,
        slack: dict[str, float | None] | None = None,
        progress: str = "100%",
        generated: str = "gen",
    ) -> None:
        super().__init__()
        self.board_parts = board_parts
        self.progress = progress
        self.generated = generated
        self.slack = {"setup": 0.25, "hold": 0.02, **(slack or {})}
        self.files: list[Path] = []
        self.board = ""
        self.params: dict[str, str] = {}

    def run(self, script: Path, *arguments: str, backend: str = "") -> None:
        """Run a script with its arguments. Raises tcl.TclError."""
        given = " ".join("{" + a + "}" for a in arguments)
        tcl.run(f"set argv [list {given}]\nsource {{{script}}}", self.commands, self.dispatch, backend)

    def sources(self) -> tuple[str, str]:
        top = self.thing("fileset").values.get("top", "")
        text = "\n".join(path.read_text() for path in self.files if path.suffix == ".v")
        if not re.search(rf"\bmodule\s+{top or '!'}\b", text):
            raise VivadoError(f"no module {top!r} among the files")
        return top, text

    @command("create_project", "-force -part=", 2)
    def create_project(self, options: dict[str, str], name: str, folder: str) -> None:
        if options.get("-part") not in {board.part for board in BOARDS.values()}:
            raise VivadoError(f"create_project: no part {options.get('-part')}")
        self.folder_of_project = Path(folder)
        self.folder_of_project.mkdir(parents=True, exist_ok=True)
        self.project_name = name
        rules = {"board_part": one_of(*self.board_parts), "ip_repo_paths": anything}
        self.new("project", "project", rules, part=options["-part"])
        self.new("fileset", "fileset", {"top": anything})
        self.new("impl_1", "run", RUN, progress="0%", status="Not started")

    @command("close_project")
    def close_project(self, options: dict[str, str]) -> None:
        self.board = self.thing("project").get("board_part")
        self.things.clear()
        self.children.clear()

    @command("current_project")
    def current_project(self, options: dict[str, str]) -> str:
        return self.thing("project").handle

    @command("current_fileset")
    def current_fileset(self, options: dict[str, str]) -> str:
        return self.thing("fileset").handle

    @command("set_param", "", 2)
    def set_param(self, options: dict[str, str], name: str, value: str) -> None:
        if name != "board.repoPaths":
            raise VivadoError(f"set_param: no parameter {name}")
        self.params[name] = value

    @command("get_board_parts", "-quiet", 0, 1)
    def get_board_parts(self, options: dict[str, str], pattern: str = "*") -> str:
        known = list(self.board_parts)
        for folder in tcl.split(self.params.get("board.repoPaths", "")):
            known += [path.read_text() for path in Path(folder).glob("*/board")]
        self.board_parts = tuple(known)
        return " ".join(part for part in known if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), part))

    @command("add_files", "-norecurse -fileset=", 1)
    def add_files(self, options: dict[str, str], path: str) -> None:
        if not Path(path).is_file():
            raise VivadoError(f"add_files: no file {path}")
        if (options.get("-fileset") == "constrs_1") != path.endswith(".xdc"):
            raise VivadoError(f"add_files: {path} does not go into {options.get('-fileset', 'sources_1')}")
        self.files.append(Path(path))

    @command("update_compile_order", "-fileset=")
    def update_compile_order(self, options: dict[str, str]) -> None:
        if options.get("-fileset") != "sources_1":
            raise VivadoError("update_compile_order: no such fileset")

    @command("update_ip_catalog")
    def update_ip_catalog(self, options: dict[str, str]) -> None:
        for folder in tcl.split(self.thing("project").get("ip_repo_paths")):
            for path in Path(folder).rglob("component.xml"):
                core = json.loads(path.read_text())
                self.catalogue[core["vlnv"]] = core_of(core)

    @command("get_files", "-quiet", 1)
    def get_files(self, options: dict[str, str], name: str) -> str:
        if name != f"{self.design_name}.bd":
            raise VivadoError(f"get_files: no file {name}")
        if name not in self.things:
            self.new(name, "file", {})
        return name

    @command("generate_target", "", 2)
    def generate_target(self, options: dict[str, str], target: str, file: str) -> None:
        if target != "all":
            raise VivadoError(f"generate_target: no target {target}")
        self.thing(file, "file")
        generated_folder = self.folder_of_project / f"{self.project_name}.{self.generated}"
        handoff = generated_folder / f"sources_1/bd/{self.design_name}/hw_handoff"
        handoff.mkdir(parents=True, exist_ok=True)
        (handoff / f"{self.design_name}.hwh").write_text(f"<EDKSYSTEM>{len(self.design.cells)}</EDKSYSTEM>")

    @command("make_wrapper", "-top -import -files=")
    def make_wrapper(self, options: dict[str, str]) -> None:
        self.thing(options.get("-files", ""), "file")
        path = self.folder_of_project / f"{self.design_name}_wrapper.v"
        path.write_text(f"module {self.design_name}_wrapper;\nendmodule\n")
        if "-import" in options:
            self.files.append(path)

    @command("launch_runs", "-to_step= -jobs=", 1)
    def launch_runs(self, options: dict[str, str], run: str) -> None:
        self.thing(run, "run")
        if options.get("-to_step") != "write_bitstream":
            raise VivadoError(f"launch_runs: no step {options.get('-to_step')}")

    @command("wait_on_run", "", 1)
    def wait_on_run(self, options: dict[str, str], run: str) -> None:
        done = self.progress == "100%"
        self.thing(run, "run").values.update(
            progress=self.progress, status="complete" if done else "place_design ERROR"
        )
        if done:
            folder = self.folder_of_project / f"{self.project_name}.runs" / run
            folder.mkdir(parents=True, exist_ok=True)
            cells = sorted((c.name, sorted(c.values.items())) for c in self.design.cells.values())
            (folder / f"{self.design_name}_wrapper.bit").write_text(json.dumps(cells))

    @command("get_runs", "", 1)
    def get_runs(self, options: dict[str, str], name: str) -> str:
        return self.thing(name, "run").handle

    @command("open_run", "", 1)
    def open_run(self, options: dict[str, str], name: str) -> None:
        self.thing(name, "run")

    @command("report_timing_summary", "-file=")
    def report_timing_summary(self, options: dict[str, str]) -> None:
        Path(options["-file"]).write_text("timing")

    @command("report_utilization", "-hierarchical -file=")
    def report_utilization(self, options: dict[str, str]) -> None:
        Path(options["-file"]).write_text("utilisation")

    @command("get_timing_paths", "-setup -hold -max_paths= -nworst=")
    def get_timing_paths(self, options: dict[str, str]) -> str:
        kind = "hold" if "-hold" in options else "setup"
        if self.slack[kind] is None:
            return ""
        return self.new(f"path_{kind}", "path", {"slack": read_only}, slack=self.slack[kind]).handle

    @command("write_hw_platform", "-fixed -include_bit -force -file=")
    def write_hw_platform(self, options: dict[str, str]) -> None:
        Path(options["-file"]).write_text("xsa")


def main(words: list[str]) -> int:
    """The program that the Makefile calls: as Vivado in batch mode, status 1 where the script fails."""
    options = dict(pairwise(words))
    arguments = words[words.index("-tclargs") + 1 :] if "-tclargs" in words else []
    if options.get("-mode") != "batch" or "-nojournal" not in words:
        raise SystemExit("vivado: -mode batch and -nojournal are expected")
    vivado = Vivado(slack={"setup": float(os.environ.get("STUB_SLACK", "0.25"))})
    try:
        vivado.run(Path(options["-source"]).resolve(), *arguments)
    except tcl.TclError as error:
        print("\n".join(vivado.printed))
        print(error, file=sys.stderr)
        return 1
    print("\n".join(vivado.printed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
