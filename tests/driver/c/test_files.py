"""The files of the C side: the header that is written from hls_gen.design, and the list that a deploy folder copies."""

import re
import shutil
import subprocess

import pytest

from bitloom.driver.c import FOLDER, files
from bitloom.driver.c.hardware_header import FILE, text
from bitloom.hls_gen.design.dma import LENGTH_BITS
from bitloom.hls_gen.design.headers import ERRORS
from bitloom.hls_gen.design.registers import COMMON

from .compiled import C99, CORE, build, compiler


def test_the_header_is_what_the_design_says():
    assert FILE.read_text() == text(), "python -m bitloom.driver.c.hardware_header writes it anew"


def test_no_name_is_defined_twice():
    names = re.findall(r"#define (\w+)", text())
    assert len(names) == len(set(names))
    assert {f"BITLOOM_REG_{register.name}" for register in COMMON} <= set(names)
    assert [f"BITLOOM_{error.name} = {error.code}" for error in ERRORS] == re.findall(r"BITLOOM_\w+ = \d+", text())


def test_bits_of_a_length_are_those_of_the_block_design():
    assert f"#define BITLOOM_DMA_LENGTH_BITS {LENGTH_BITS}\n" in (FOLDER / "bitloom.h").read_text()


def test_all_files_are_listed():
    listed = {path.name for path in files()}
    assert {"bitloom.h", "bitloom_hardware.h", "bitloom_program.c"} <= listed
    assert listed == {path.name for path in FOLDER.iterdir() if path.suffix not in (".py", "")}


def test_headers_stand_alone(tmp_path):
    """Each header brings what it needs."""
    for path in FOLDER.glob("*.h"):
        source = tmp_path / "alone.c"
        source.write_text(f'#include "{path.name}"\nint main(void) {{ return 0; }}\n')
        build("alone", [source], *C99)


def test_no_global_variables_and_no_names_of_others(tmp_path):
    """Two devices share nothing, and the library's names don't meet those of a program."""
    if shutil.which("nm") is None:
        pytest.skip("nm of the binutils is needed, got none")
    command = compiler(*C99)
    for source in (*CORE, FOLDER / "bitloom_linux.c"):
        target = tmp_path / f"{source.stem}.o"
        subprocess.run([*command, *C99, "-fno-pic", "-c", source, "-o", target], check=True)
        symbols = subprocess.run(["nm", "-P", target], capture_output=True, text=True, check=True).stdout
        kinds = [line.split()[:2] for line in symbols.splitlines()]
        assert [name for name, kind in kinds if kind in "bBcCdD"] == []
        assert [
            name for name, kind in kinds if kind.isupper() and kind != "U" and not name.startswith("bitloom_")
        ] == []
