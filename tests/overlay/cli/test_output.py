"""Text that standard output can't take ends a command with one line and a status that is not 0."""

import subprocess
import sys

import pytest

CODE = "import sys; from bitloom.overlay.cli import main; main()"
SAID = "bitloom: standard output: must be usable, got: no space left on device\n"


def run(*words, stdout):
    return subprocess.run([sys.executable, "-c", CODE, *words], stdout=stdout, stderr=subprocess.PIPE, text=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words",
    [("--version",), ("--help",), ("evaluate", "--help"), ("evaluate", "digits-cnn", "digits", "-q", "--limit", "2")],
)
def test_a_full_disk(words):
    with open("/dev/full", "w") as full:
        done = run(*words, stdout=full)
    assert (done.returncode, done.stderr) == (1, SAID)


def test_standard_output_that_is_closed():
    done = subprocess.run(f'{sys.executable} -c "{CODE}" --version >&-', shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_is_no_error():
    command = f'{sys.executable} -c "{CODE}" --help | true'
    assert subprocess.run(command, shell=True, capture_output=True, text=True).stderr == ""
