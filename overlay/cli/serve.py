"""The command serve: a build on a virtual board that pynq reaches over PYNQ's remote protocol."""

import ipaddress
import logging
import signal
from pathlib import Path

import click

from bitloom.overlay.build import build as builds
from bitloom.overlay.virtual.serve import PORT

from .options import FOLDER
from .show import one_line_errors, working


@click.command("serve")
@click.argument("folder", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one.")
@one_line_errors
def serve_command(folder: Path, host: str, port: int) -> None:
    """Serve the build in FOLDER as a board, for pynq 4 in another process or environment.

    There, PYNQ_REMOTE_DEVICES=HOST is all that pynq needs. Ctrl-C ends the server.
    """
    try:
        from bitloom.overlay.virtual.serve.server import Server
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith(("pynq", "grpc")):
            raise
        raise ImportError(f"serve: pynq >= 4.0 with PYNQ's remote protocol must be installed, got: {e}") from None
    made = builds.load(folder)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    with working("compiling the model"):
        server = Server(made.bit, host, port)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with server:
            if not _loopback(host):
                rule = "can use this board: PYNQ's protocol has no password and no encryption"
                click.echo(f"bitloom: warning: whoever reaches {host}:{server.port} {rule}", err=True)
            click.echo(_instructions(made, host, server.port))
            server.wait()
    except KeyboardInterrupt:
        click.echo("bitloom: the server ends", err=True)


def _loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _instructions(made: builds.Build, host: str, port: int) -> str:
    """How to connect."""
    if port == PORT:
        shell, device = f"    export PYNQ_REMOTE_DEVICES={host}\n    python3\n\n", ""
    else:
        shell = (
            f"    python3    # pynq looks at port {PORT} by itself, and must be told any other\n\n"
            "    from pynq.pl_server.remote_device import RemoteDevice\n"
        )
        device = f', device=RemoteDevice(0, "{host}", {port})'
    programs = "".join(f'    overlay.load("{path.resolve()}")\n' for path in made.programs.values())
    return (
        f"{made.design.name} on a virtual board at {host}:{port}; Ctrl-C ends it. In another terminal:\n\n{shell}"
        "    from bitloom import BitloomOverlay\n"
        f'    overlay = BitloomOverlay("{made.bit.resolve()}"{device})\n{programs}'
    )
