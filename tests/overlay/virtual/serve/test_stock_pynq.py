"""The command serve, and pynq as anybody installs it: another process that sets PYNQ_REMOTE_DEVICES and nothing else.

pynq looks at port 7967 only. A free address of 127.0.0.0/8 takes the place of a free port.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.zoo.digits import load_digits
from bitloom.overlay.cli import serve
from bitloom.overlay.virtual.serve import PORT
from bitloom.overlay.virtual.serve.errors import LOG
from tests import commands

FRAMES = 6


def free_address() -> str:
    """An address of this machine on which nobody has PORT."""
    for _ in range(20):
        address = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        with socket.socket() as probe:
            try:
                probe.bind((address, PORT))
            except OSError:
                continue
            return address
    pytest.skip(f"no address of 127.0.0.0/8 can be had with port {PORT} (other systems than Linux have 127.0.0.1 only)")


def heed_interrupts():
    """A shell has its background processes, and those that they start, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def serving(folder, *options):
    """`bitloom serve` in another process: gives (process, the lines that it printed until it listened)."""
    command = [sys.executable, "-c", "from bitloom.overlay.cli import main; main()", "serve", str(folder), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes, preexec_fn=heed_interrupts)
    try:
        lines = []
        while not lines or "overlay.load" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], process.communicate()[1]
        yield process, "".join(lines)
    finally:
        process.kill()
        process.communicate()


CLIENT = textwrap.dedent("""
    import asyncio, json, sys
    import numpy as np
    from bitloom import BitloomOverlay

    bit, program, images, answer = sys.argv[1:]
    images = np.load(images)
    with BitloomOverlay(bit) as overlay:
        overlay.load(program)
        results = {
            "predict": overlay.predict(images, batch=4).tolist(),
            "classify": overlay.classify(images).tolist(),
            "async": asyncio.run(overlay.predict_async(images, batch=2)).tolist(),
            "counters": overlay.counters(),
            "has_interrupt": overlay.accelerator.has_interrupt,
            "npus": int(overlay.accelerator.core.register_map.GEOMETRY.NPUS),
            "device": type(overlay.device).__name__,
            "foreign": sorted(
                {"bitloom.overlay", "bitloom.hls_gen.compiler", "bitloom.hls_gen.rtl", "veriloggen"} & set(sys.modules)
            ),
        }
    open(answer, "w").write(json.dumps(results))
""")


def classify(folder, address, digits, images):
    """Run CLIENT with PYNQ_REMOTE_DEVICES; the results that it wrote."""
    np.save(folder / "images.npy", images)
    (folder / "client.py").write_text(CLIENT)
    arguments = [digits.bit, digits.programs["digits-cnn"], folder / "images.npy", folder / "answer.json"]
    environment = {**os.environ, "PYNQ_REMOTE_DEVICES": address, "no_proxy": "*"}
    command = [sys.executable, str(folder / "client.py"), *map(str, arguments)]
    subprocess.run(command, env=environment, cwd=folder, check=True, timeout=120)
    return json.loads((folder / "answer.json").read_text())


@pytest.mark.slow
def test_digits_by_pynqs_own_protocol(digits, tmp_path):
    images = load_digits().test_images[:FRAMES]
    expected = networks.load("digits-cnn").forward(images)
    address = free_address()
    with serving(digits.folder, "--host", address) as (process, printed):
        assert f"export PYNQ_REMOTE_DEVICES={address}" in printed
        assert "warning" not in printed
        answers = classify(tmp_path, address, digits, images)
        again = classify(tmp_path, address, digits, images)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, output) == (0, "")
        assert errors.splitlines()[-1] == "bitloom: the server ends"
    assert answers["predict"] == answers["async"] == expected.tolist()
    assert answers["classify"] == expected.reshape(FRAMES, -1).argmax(axis=1).tolist()
    assert answers["counters"]["frames"] == 3 * FRAMES
    assert (answers["has_interrupt"], answers["device"], answers["npus"], answers["foreign"]) == (
        False,
        "RemoteDevice",
        1,
        [],
    )
    assert again["predict"] == expected.tolist()


def test_a_port_that_pynq_does_not_know_and_others_that_can_reach_it(digits, tmp_path):
    """The printed lines are run, word for word."""
    with serving(digits.folder, "--host", "0.0.0.0", "--port", "0") as (process, printed):
        port = int(printed.partition("0.0.0.0:")[2].partition(";")[0])
        shell, _, python = textwrap.dedent(printed.partition("In another terminal:\n")[2]).partition("python3\n")
        (tmp_path / "client.py").write_text(python + "print(overlay.accelerator.program.name, overlay.device.port)\n")
        lines = f"set -e\n{shell}\nno_proxy=* exec {sys.executable} client.py\n"
        ran = subprocess.run(["sh", "-c", lines], cwd=tmp_path, capture_output=True, text=True, timeout=240)
        assert ran.stdout == f"digits-cnn {port}\n", ran.stderr
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=120)[1]
    assert process.returncode == 0
    rule = "can use this board: PYNQ's protocol has no password and no encryption"
    assert errors.splitlines()[0] == f"bitloom: warning: whoever reaches 0.0.0.0:{port} {rule}"
    assert errors.splitlines()[-1] == "bitloom: the server ends"


call = partial(commands.call, "serve")


def test_an_address_that_is_taken(digits):
    """One line, of gRPC's own none; and at once: without a model that is compiled first."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        command = [sys.executable, "-c", "from bitloom.overlay.cli import main; main()", "serve", str(digits.folder)]
        environment = {**os.environ, "VERILATOR_ROOT": "/absent", "PATH": "", "BITLOOM_CACHE": "/absent"}
        ran = subprocess.run(
            [*command, "--port", str(port)], capture_output=True, text=True, timeout=240, env=environment
        )
    rule = "the address must be this machine's and free, and isn't"
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"bitloom: 127.0.0.1:{port}: {rule}\n")


def test_a_host_that_is_none(digits):
    result = call(digits.folder, "--host", "no.such.host.invalid", "--port", "7001")
    rule = "the address must be this machine's and free, and isn't"
    assert (result.exit_code, result.output) == (1, f"bitloom: no.such.host.invalid:7001: {rule}\n")


def test_a_pynq_without_the_protocol(digits, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("bitloom.overlay.virtual.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pynq.remote", None)  # as in pynq 3
    result = call(digits.folder)
    rule = "pynq >= 4.0 with PYNQ's remote protocol must be installed"
    assert result.exit_code == 1
    assert result.output.startswith(f"bitloom: serve: {rule}, got: ")
    assert result.output.count("\n") == 1


def test_no_build(tmp_path):
    result = call(tmp_path)
    assert result.exit_code == 1
    rule = "must be a folder that `bitloom build` wrote, got one without build.json"
    assert result.output == f"bitloom: {tmp_path}: {rule}\n"
    assert result.output.count("\n") == 1


def test_the_log_is_shown_while_the_command_runs(capsys):
    for _ in range(2):
        with serve._shown_log():
            LOG.info("loaded")
        assert (LOG.propagate, LOG.handlers) == (True, [])
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["loaded"] * 2
