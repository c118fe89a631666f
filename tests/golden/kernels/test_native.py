"""Compiling C++ on demand: the key, the messages, several processes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bitloom.golden.kernels import native
from bitloom.golden.kernels.cache import LAYOUT
from bitloom.golden.kernels.native import BuildError

SOURCE = """
#include "two.h"
#ifndef MORE
#define MORE 0
#endif
extern "C" __attribute__((visibility("default"))) int add_two(int x) { return x + TWO + MORE; }
"""
NOT_FOUND = "was not found: apt-get install g++, or set CXX to a C++17 compiler"


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """add.cpp and two.h in a folder of their own, and an empty cache."""
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "add.cpp").write_text(SOURCE)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "two.h").write_text("#define TWO 2\n")
    return [tmp_path / "add.cpp"], [tmp_path / "include" / "two.h"]


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """A compiler that writes a line for each run; gives the file of these lines."""
    log, program = tmp_path / "runs", tmp_path / "logging-g++"
    log.write_text("")
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("g++")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    return log


def compilations(log: Path) -> int:
    return sum("-shared" in line for line in log.read_text().splitlines())


def test_a_library_is_compiled_once(sources, logged):
    for _ in range(2):
        assert native.library(sources[0], includes=sources[1]).add_two(40) == 42
    assert compilations(logged) == 1


def test_a_changed_source_include_or_flag_is_another_library(sources, logged):
    paths, includes = sources
    native.library(paths, includes=includes)
    includes[0].write_text("#define TWO 3\n")
    assert native.library(paths, includes=includes).add_two(40) == 43
    paths[0].write_text(SOURCE.replace("x + TWO", "x - TWO"))
    assert native.library(paths, includes=includes).add_two(40) == 37
    assert native.library(paths, includes=includes, flags=["-DMORE=100"]).add_two(40) == 137
    assert compilations(logged) == 4


def test_another_version_of_the_compiler_is_another_library(sources, logged):
    """The compiler's version is part of the key, so that a changed compiler compiles anew."""
    program = Path(os.environ["CXX"])
    for version in ("g++ 12", "g++ 13"):
        said = f'if [ "$1" = --version ]; then echo {version}; exit; fi'
        program.write_text(f'#!/bin/sh\n{said}\necho "$@" >> {logged}\nexec g++ "$@"\n')
        native._compiler.cache_clear()
        native.library(sources[0], includes=sources[1])
    assert compilations(logged) == 2


def test_processes_share_one_compilation(sources, logged):
    paths, includes = sources
    script = (
        "from pathlib import Path\n"
        "from bitloom.golden.kernels import native\n"
        f"library = native.library([Path({str(paths[0])!r})], includes=[Path({str(includes[0])!r})])\n"
        "assert library.add_two(1) == 3\n"
    )
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", script], env=environment) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert compilations(logged) == 1


def test_a_missing_compiler_is_one_line_that_says_what_to_do(sources, monkeypatch):
    def message() -> str:
        with pytest.raises(BuildError) as caught:
            native.library(sources[0], includes=sources[1])
        return str(caught.value)

    monkeypatch.setenv("CXX", "no-such-g++")
    assert message() == f"C++ compiler 'no-such-g++' {NOT_FOUND}"
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "/nowhere")
    assert message() == f"C++ compiler 'g++' or 'clang++' {NOT_FOUND}"


def test_a_file_that_is_no_program_is_no_compiler(sources, tmp_path, monkeypatch):
    program = tmp_path / "no-program"
    program.write_text("g++\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    with pytest.raises(BuildError) as caught:
        native.library(sources[0], includes=sources[1])
    assert str(caught.value) == f"C++ compiler {str(program)!r} must be a program (set CXX), got: Exec format error"


def test_a_source_that_the_compiler_refuses_leaves_nothing_in_the_cache(sources, tmp_path):
    sources[0][0].write_text("int f() { return missing; }\n")
    with pytest.raises(
        BuildError, match=r"(?s)^(\S*/)?g\+\+ add\.cpp failed \(exit status 1\):\n.* error: .missing. was not"
    ):
        native.library(sources[0])
    assert [path.suffix for path in (tmp_path / "cache" / LAYOUT / "native").iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_named(sources, tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("BITLOOM_CACHE", str(blocked))
    with pytest.raises(BuildError) as caught:
        native.library(sources[0], includes=sources[1])
    assert str(caught.value).startswith(f"{blocked}: the cache must be writable (set BITLOOM_CACHE), got: ")
    assert "\n" not in str(caught.value)


def test_processor_features_are_those_of_linux_on_x86(monkeypatch):
    features = native.processor_features()
    if sys.platform == "linux" and native.platform.machine() == "x86_64":
        assert {"fpu", "sse2"} <= features
    monkeypatch.setattr(native.platform, "machine", lambda: "aarch64")
    assert native.processor_features() == frozenset()
    assert "-march=native" not in native.Compiler("g++", "g++ 12", native._processor()).flags


def test_a_compiler_that_finds_the_disk_full(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "cache"))
    compiler = tmp_path / "cxx"
    compiler.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo cxx 1; exit; fi\n'
        "echo 'fatal error: error writing to library.so: No space left on device' >&2; exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    source = tmp_path / "a.cpp"
    source.write_text("")
    said = f"{tmp_path}/cache: the cache must be writable (set BITLOOM_CACHE), got: no space left on device"
    with pytest.raises(BuildError, match=rf"^{re.escape(said)}\Z"):
        native.library([source])
