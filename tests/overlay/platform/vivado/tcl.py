"""A Tcl interpreter for tests, with commands written in Python: the one inside tkinter, else tclsh."""

import base64
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable

import pytest

try:
    import tkinter
except ImportError:
    tkinter = None

Dispatch = Callable[..., tuple[int, str]]
"""Called with a command and its arguments; gives 0 and the result, or 1 and the message of an error."""

BACKENDS = [name for name, there in (("tkinter", tkinter), ("tclsh", shutil.which("tclsh"))) if there]
MISSING = "no Tcl interpreter: neither tkinter nor tclsh is there"

PIPE = r"""
fconfigure stdin -translation lf
fconfigure stdout -translation lf
rename puts stub_puts
proc encode {text} {return =[binary encode base64 [encoding convertto utf-8 $text]]}
proc decode {text} {return [encoding convertfrom utf-8 [binary decode base64 [string range $text 1 end]]]}
proc ::stub args {
    stub_puts [lmap word $args {encode $word}]
    flush stdout
    return [lmap word [gets stdin] {decode $word}]
}
"""


class TclError(Exception):
    """A script ended with an error."""


def run(program: str, commands: Iterable[str], dispatch: Dispatch, backend: str = "") -> None:
    """Run ``program``, with ``commands`` answered by ``dispatch``. Raises TclError with the message of the script."""
    if not BACKENDS:
        pytest.skip(MISSING)
    prelude = "".join(
        f"namespace eval ::{command.rpartition('::')[0]} {{}}\n"
        f"proc ::{command} args {{lassign [::stub {command} {{*}}$args] code value; return -code $code $value}}\n"
        for command in commands
    )
    runner = {"tkinter": _run_in_tkinter, "tclsh": _run_in_tclsh}[backend or BACKENDS[0]]
    error = runner(prelude, program, dispatch)
    if error is not None:
        raise TclError(error)


def _run_in_tkinter(prelude: str, program: str, dispatch: Dispatch) -> str | None:
    interpreter = tkinter.Tcl()
    interpreter.createcommand("::stub", lambda *words: tuple(map(str, dispatch(*words))))
    interpreter.eval(prelude)
    try:
        interpreter.eval(program)
    except tkinter.TclError as error:
        return str(error)
    return None


def _run_in_tclsh(prelude: str, program: str, dispatch: Dispatch) -> str | None:
    whole = f"{PIPE}{prelude}\nset code [catch {{\n{program}\n}} message]\n::stub end $code $message\nexit\n"
    with subprocess.Popen(["tclsh", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(f"set whole [encoding convertfrom utf-8 [binary decode base64 {_encoded(whole)}]]\n")
        process.stdin.write("eval $whole\n")
        process.stdin.flush()
        try:
            for line in process.stdout:
                words = [base64.b64decode(word[1:]).decode() for word in line.split()]
                if words[0] == "end":
                    return words[2] if words[1] != "0" else None
                code, value = dispatch(*words)
                process.stdin.write(f"={_encoded(str(code))} ={_encoded(value)}\n")
                process.stdin.flush()
        finally:
            process.kill()
    raise AssertionError("tclsh ended early")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def split(text: str) -> list[str]:
    """The words of a list of Tcl, without substitutions other than a backslash's."""
    words = []
    rest = text.strip()
    while rest:
        if rest[0] == "{":
            end = _closing_brace(rest)
            words.append(rest[1:end])
            rest = rest[end + 1 :]
        else:
            match = re.match(r'"((?:\\.|[^"\\])*)"|((?:\\.|[^\s"\\])+)', rest, re.DOTALL)
            if not match:
                raise ValueError(f"not a list of Tcl: {text!r}")
            quoted, bare = match.groups()
            words.append(re.sub(r"\\(.)", r"\1", bare if quoted is None else quoted, flags=re.DOTALL))
            rest = rest[match.end() :]
        if rest and not rest[0].isspace():
            raise ValueError(f"not a list of Tcl: {text!r}")
        rest = rest.lstrip()
    return words


def _closing_brace(text: str) -> int:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth == 0:
            return i
    raise ValueError(f"not a list of Tcl: {text!r}")


def joined(words: Iterable[str]) -> str:
    """A list of Tcl of words without special characters."""
    return " ".join(words)
