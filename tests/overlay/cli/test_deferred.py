"""Commands are imported when they are called: lists and completion wait for none of them."""

import os
import subprocess
import sys

from click.testing import CliRunner

from bitloom.overlay.cli.group import COMMANDS, bitloom

HEAVY = {"pynq", "veriloggen", "pyverilog", "onnx", "bitloom.hls_gen.rtl", "bitloom.overlay.cli.build"}


def fresh(*calls: str, **environment: str) -> tuple[str, set[str]]:
    """Output of ``bitloom WORDS`` for each of some words in a Python of its own, and which of HEAVY that imports."""
    script = (
        "import sys\n"
        "from bitloom.overlay.cli import main\n"
        f"for call in {calls!r}:\n"
        "    sys.argv = ['bitloom', *call.split()]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        assert not end.code\n"
        f"print(*[name for name in {sorted(HEAVY)!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.split())


def test_the_list_imports_no_command():
    listed, imported = fresh("--help")
    assert [f"  {name} " in listed for name in COMMANDS] == [True] * len(COMMANDS)
    assert not imported


def test_completion_imports_no_command():
    completed, imported = fresh("", _BITLOOM_COMPLETE="zsh_complete", COMP_WORDS="bitloom mach", COMP_CWORD="1")
    assert completed.split("\n")[:2] == ["plain", "machine"]
    assert not imported


def test_a_command_imports_its_own():
    _, imported = fresh("build --help")
    assert imported == {"veriloggen", "pyverilog", "bitloom.hls_gen.rtl", "bitloom.overlay.cli.build"}


def test_a_benchmark_of_golden_imports_no_hardware_and_no_pynq():
    assert not fresh(*(f"bench {name} --help" for name in ("cpu", "gpu", "golden")))[1]


def test_help_needs_no_pynq():
    """Of each command, also those of bench, in a Python that has no pynq."""
    script = (
        "import sys\n"
        "sys.modules['pynq'] = None\n"
        "from click.testing import CliRunner\n"
        "from bitloom.overlay.cli.group import bitloom\n"
        "of_bench = [('bench', name) for name in bitloom.commands['bench'].commands]\n"
        "for names in [*((name,) for name in bitloom.commands), *of_bench]:\n"
        "    print(*names, CliRunner().invoke(bitloom, [*names, '--help']).exception)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, [line for line in lines if not line.endswith(" None")]) == (0, [])
    assert len(lines) > len(COMMANDS)


def test_a_command_that_is_none_is_told_what_is_alike():
    result = CliRunner().invoke(bitloom, ["buildd"])
    assert result.exit_code == 2
    assert "No such command 'buildd'." in result.stderr
    assert "buildd" not in COMMANDS
