"""The interpreter of the tests: lists, errors, and both backends."""

import pytest

from . import tcl


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b", ["a", "b"]),
        ("", []),
        ("{a b} c", ["a b", "c"]),
        ("{a {b c}} {}", ["a {b c}", ""]),
        (r"a\ b c", ["a b", "c"]),
        ('"a b" c', ["a b", "c"]),
    ],
)
def test_split(text, words):
    assert tcl.split(text) == words


@pytest.mark.parametrize("text", ["{a", "{a}b", '"a'])
def test_split_refuses(text):
    with pytest.raises(ValueError, match=r"^not a list of Tcl: "):
        tcl.split(text)


@pytest.mark.parametrize("backend", tcl.BACKENDS)
def test_commands_and_errors(backend):
    heard = []

    def dispatch(name, *words):
        heard.append((name, words))
        return (1, "no such thing") if words == ("bad",) else (0, "an answer")

    tcl.run('if {[catch {a::b bad} said]} {c $said "" {x y}}\nc [a::b]', ["a::b", "c"], dispatch, backend)
    assert heard == [
        ("a::b", ("bad",)), ("c", ("no such thing", "", "x y")), ("a::b", ()), ("c", ("an answer",)),
    ]  # fmt: skip
    with pytest.raises(tcl.TclError, match=r"^no such thing$"):
        tcl.run("c bad", ["c"], dispatch, backend)
    with pytest.raises(tcl.TclError, match=r'^invalid command name "d"$'):
        tcl.run("d", ["c"], dispatch, backend)


def test_says_where_there_is_none(monkeypatch):
    monkeypatch.setattr(tcl, "BACKENDS", [])
    with pytest.raises(pytest.skip.Exception, match=r"^no Tcl interpreter: neither tkinter nor tclsh is there$"):
        tcl.run("", [], lambda: (0, ""))
