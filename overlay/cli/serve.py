"""The command serve: a build on a virtual board that pynq reaches over PYNQ's remote protocol."""

import ipaddress
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import click

from bitloom.overlay.build import build as builds
from bitloom.overlay.virtual.serve import PORT

from .options import FOLDER, NumberRange
from .progress import working
from .simulation import require_pynq
from .subject import loaded


@click.command("serve")
@click.argument("folder", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one.")
@click.option(
    "--idle-seconds",
    type=NumberRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Silence after which the client that has the board loses it to the next one that asks.",
)
def serve_command(folder: Path, host: str, port: int, idle_seconds: float) -> None:
    """Serve the build in FOLDER as a board, for pynq 4 in another process or environment.

    There, PYNQ_REMOTE_DEVICES=HOST is all that pynq needs. One client at a time has the board. Ctrl-C ends the server.
    """
    require_pynq()
    try:
        from bitloom.overlay.virtual.serve.limits import ServerLimits
        from bitloom.overlay.virtual.serve.server import Server
    except ModuleNotFoundError as e:
        if not (e.name or "").startswith(("pynq", "grpc")):
            raise
        raise ImportError(f"serve: pynq >= 4.0 with PYNQ's remote protocol must be installed, got: {e}") from None
    installed = version("pynq")
    if int(installed.partition(".")[0]) < 4:  # 3.1 has it too, without room for bit 31 of a register
        raise ImportError(f"serve: pynq >= 4.0 with PYNQ's remote protocol must be installed, got: {installed}")
    limits = ServerLimits(idle_seconds=idle_seconds)
    build = loaded(folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _shown_log():
            with working("compiling the model"):
                server = Server(build.bit, host, port, limits)
            with server:
                if not _loopback(host):
                    rule = "can use this board: PYNQ's protocol has no password and no encryption"
                    click.echo(f"bitloom: warning: whoever reaches {host}:{server.port} {rule}", err=True)
                click.echo(_instructions(build, host, server.port))
                server.wait()
    except KeyboardInterrupt:
        click.echo("bitloom: the server ends", err=True)


@contextmanager
def _shown_log() -> Iterator[None]:
    """Around the server: its log goes to standard error, with the time."""
    from bitloom.overlay.virtual.serve.errors import LOG

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False  # -v shows steps in a way of its own
    try:
        yield
    finally:
        LOG.propagate = True
        LOG.removeHandler(handler)


def _loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _instructions(build: builds.Build, host: str, port: int) -> str:
    """How to connect, from this machine where the server listens on all addresses."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    other_port = (
        f"    # pynq looks at port {PORT} by itself, and must be told any other\n"
        "    from pynq.pl_server.device import Device\n"
        "    from pynq.pl_server.remote_device import RemoteDevice\n"
        f'    Device.active_device = RemoteDevice(0, "{_in_address(reached)}", {port})\n\n'
    )
    programs = "".join(f"    overlay.load({_literal(path.resolve())})\n" for path in build.programs.values())
    return (
        f"{build.design.name} on a virtual board at {host}:{port}; Ctrl-C ends it. In another terminal:\n\n"
        f"    export PYNQ_REMOTE_DEVICES={_in_address(reached)}\n    python3\n\n"
        f"{'' if port == PORT else other_port}"
        "    from bitloom import BitloomOverlay\n"
        f"    overlay = BitloomOverlay({_literal(build.bit.resolve())})\n{programs}"
    )


def _literal(path: Path) -> str:
    """A path as a literal of Python, between double quotes where the path has none."""
    quoted = repr(str(path))
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in quoted else quoted


def _in_address(host: str) -> str:
    """A host as it stands in front of a colon and a port."""
    return f"[{host}]" if ":" in host else host
