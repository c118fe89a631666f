"""Builds that reports are about, each made once: one NPU and a chain of four, which are run, and one whose weights are
streamed, whose counters are made up; and a network in partitions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.overlay.build.build import build
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.measured import Measured, measure
from bitloom.overlay.build.reference_designs import DIGITS, reference_design
from bitloom.overlay.show.report.accuracy import accuracy_of
from bitloom.overlay.show.report.compiled import Compiled, compiled
from bitloom.overlay.show.report.gather import gather
from bitloom.overlay.show.report.report import Report
from tests.driver.test_partitions import HOLDS_ALL

FRAMES = 4


@pytest.fixture(scope="session")
def compiled_network(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Compiled]:
    """Name of a design for digits-cnn, "streamed" or "partitions" -> the network compiled for it."""
    done: dict[str, Compiled] = {}

    def make(name: str) -> Compiled:
        if name not in done:
            model = networks.load("digits-cnn")
            folder = tmp_path_factory.mktemp("report") / name
            if name == "streamed":
                sizing = Sizing(stream_weights=True)
                finished = build(folder, size_memories("digits", [model], DIGITS, sizing=sizing), [model])
            elif name == "partitions":
                choices = CompileChoices(partitions={"conv_2": 1, "dense_4": 2})
                finished = build(folder, size_memories("digits", [model], HOLDS_ALL), [model], choices=choices)
            else:
                chosen = reference_design(name)
                design = chosen.design("digits-cnn", [model])
                finished = build(folder, design, [model], choices=chosen.choices)
            done[name] = compiled(finished, model)
        return done[name]

    return make


@pytest.fixture(scope="session")
def run(compiled_network: Callable[[str], Compiled]) -> Callable[[str], Measured]:
    """Name of a design -> its run of FRAMES frames."""
    done: dict[str, Measured] = {}

    def find(name: str) -> Measured:
        if name not in done:
            design_network = compiled_network(name)
            done[name] = (
                streamed(design_network)
                if name == "streamed"
                else measure(
                    design_network.build, design_network.model, random_images(design_network.model.network, FRAMES, 0)
                )
            )
        return done[name]

    def streamed(design_network: Compiled) -> Measured:
        """As on one NPU, and 5 cycles a frame more, in which weights are waited for."""
        plain = find("digits-cnn")
        counters = {
            n: {**own, "cycles": own["cycles"] + 5 * n, "npu0_wait_weights": 5 * n} for n, own in plain.counters.items()
        }
        return replace(plain, counters=counters, design_digest=design_network.network.design_digest)

    return find


@pytest.fixture(scope="session", params=["digits-cnn", "digits-cnn-pipeline", "streamed", "partitions"])
def report(
    request: pytest.FixtureRequest, compiled_network: Callable[[str], Compiled], run: Callable[[str], Measured]
) -> Report:
    """The report of each design."""
    return gather(compiled_network(request.param), run(request.param))


@pytest.fixture(scope="session")
def one(compiled_network: Callable[[str], Compiled], run: Callable[[str], Measured]) -> Report:
    """The report of digits-cnn on one NPU."""
    digits = compiled_network("digits-cnn")
    return replace(gather(digits, run("digits-cnn")), accuracy=accuracy_of(digits.model))


@pytest.fixture(scope="session")
def folder(compiled_network: Callable[[str], Compiled]) -> Path:
    """The folder of the build of digits-cnn on one NPU."""
    return compiled_network("digits-cnn").build.folder
