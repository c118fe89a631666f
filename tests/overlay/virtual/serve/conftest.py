"""Servers: one with loop.v for the protocol, one build of digits-cnn for whole clients."""

import pytest

pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.virtual.serve.limits import ServerLimits
from bitloom.overlay.virtual.serve.server import Server
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay
from tests.overlay.conftest import loop_verilog
from tests.overlay.platform.manifest import loop_manifest

from .calls import Client


@pytest.fixture(scope="session")
def bit(tmp_path_factory):
    """A simulation .bit of loop.v."""
    return write_simulation_overlay(tmp_path_factory.mktemp("loop"), loop_manifest(), loop_verilog())


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A build of digits-cnn, the one of ``bitloom demo``."""
    model = networks.load("digits-cnn")
    return builds.build(tmp_path_factory.mktemp("digits"), size_memories("digits", [model], DIGITS), [model])


@pytest.fixture
def limits():
    """ServerLimits of the server; a test that wants others parametrises this."""
    return ServerLimits()


@pytest.fixture
def server(bit, limits):
    """A server of loop.v on a free port."""
    with Server(bit, port=0, limits=limits) as server:
        yield server


@pytest.fixture
def connect(server):
    """connect() -> another Client of ``server``."""
    clients = []

    def connect():
        clients.append(Client(server))
        return clients[-1]

    yield connect
    for client in clients:
        client.channel.close()


@pytest.fixture
def client(connect):
    return connect()
