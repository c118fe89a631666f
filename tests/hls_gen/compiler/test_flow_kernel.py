"""The flow model in C++ is the one in Python: cycles, counts, levels of stores and deadlocks of random networks."""

import re

import pytest

from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler.flow import Deadlock, kernel, simulate, steady
from bitloom.hls_gen.compiler.flow.kernel import FramesRun
from bitloom.hls_gen.compiler.flow.network import ProcessNetwork
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.flow.record import KINDS, numbers_of_timing
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.study.mlperf_tiny import NPU
from tests.replay import networks

CASES = [(kind, number) for kind in networks.KINDS for number in range(networks.EACH)]


def told(frames: FramesRun) -> object:
    """Times, counts and stores of frames."""
    return list(frames.done), list(frames.accepted), frames.counts, frames.stores


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FramesRun]:
    """Runs of the flow model, each of which is taken in both languages and compared."""
    in_cpp = kernel.run
    runs = list[FramesRun]()

    def in_both(functions, network: ProcessNetwork, frames: int, apart: int) -> FramesRun:
        again = ProcessNetwork(network.system, frames, at_once=0)
        try:
            in_python = steady._PythonRun(again, apart).frames_run()
        except Deadlock as deadlock:
            with pytest.raises(Deadlock, match=re.escape(str(deadlock))):
                in_cpp(functions, network, frames, apart)
            raise
        in_kernel = in_cpp(functions, network, frames, apart)
        assert told(in_kernel) == told(in_python)
        runs.append(in_kernel)
        return in_kernel

    monkeypatch.setattr(kernel, "run", in_both)
    return runs


@pytest.mark.sample(6)
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_components_do_the_same_in_both_languages(kind: str, number: int, runs: list[FramesRun]) -> None:
    """Each run that sizing and compiling take, and that of the sized design."""
    line = networks.line(kind, number)
    assert runs or line.startswith("refused")


def test_lines_of_the_array_do_the_same_in_both_languages(runs: list[FramesRun]) -> None:
    """Words wait in a register in front of the line former."""
    model = mlperf_tiny.seeded(mlperf_tiny.NETWORKS["ad"]())
    npu = size_memories("tiny", [model], NPU, stream_bits=64).npus[0]
    simulate(system(plan(model, [npu]), [npu], stream_bits=64), 2)
    assert runs
    assert npu.array_sequencer.has_input_register


def test_kinds_of_components_have_the_same_numbers_in_both_languages() -> None:
    source = (kernel.FOLDER / "flow.cpp").read_text()
    in_cpp = re.findall(r"\w+", re.search(r"enum class Kind : int64_t \{(.*?)\};", source, re.DOTALL)[1])
    in_python = [re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__qualname__.split(".")[0]).upper() for kind in KINDS]
    assert in_python == in_cpp


def test_timing_has_the_same_fields_in_both_languages() -> None:
    source = (kernel.FOLDER / "streams.h").read_text()
    assert re.findall(r"\w+", re.search(r"struct Timing \{\s*Cycle (.*?);", source, re.DOTALL)[1]) == list(
        numbers_of_timing()
    )
    read = re.search(r"timing = \{(.*?)\};", (kernel.FOLDER / "flow.cpp").read_text(), re.DOTALL)[1]
    assert read.count("number()") == len(numbers_of_timing())


def test_without_a_compiler_frames_are_run_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, number = CASES[0]
    line = networks.line(kind, number)
    monkeypatch.setenv("CXX", "no-compiler")
    kernel.library.cache_clear()
    assert kernel.library() is None
    assert networks.line(kind, number) == line
    monkeypatch.undo()
    kernel.library.cache_clear()
    assert kernel.library() is not None
