"""Networks larger than their device: cut for a board, compiled, and run on the virtual board."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.encoding import unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.zoo.mlperf_tiny import seeded
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.partitions import partition, partitions
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.partitioned_program import PartitionedProgram
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build import partitioning
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.partitioning import fitting_partitions
from bitloom.overlay.fuzz.pick import Pick
from tests.errors import value_error
from tests.graph_text import network_of
from tests.hls_gen.compiler.test_partitions import residual
from tests.large_figures import megabytes_to_read
from tests.large_networks import STREAM_BITS, built, folding_of, mobilenet
from tests.replay import networks
from tests.simulated import compare, loaded, overlay

BYTES = unsigned(8)
IN_BLOCKS = {"engine": "integer", "ol": 2, "pfp": 2, "feature_bits": 9, "weight_bits": 8, "acc_bits": 32}
IN_BLOCKS["kernel_ram"] = "block"


def test_as_few_partitions_as_fit():
    """Where less block RAM is left, there are more of them, and then slices; at last nothing fits."""
    model = residual()
    npu = Npu.of(kfp=4, kgp=2, **IN_BLOCKS)
    whole = estimate(size_memories("block", [model], npu)).bram36

    def partitions_for(bram36):
        return fitting_partitions(model, (npu,), bram36, CompileChoices(), 32)

    assert partitions_for(whole) == {}
    some = partitions_for(whole - 0.5)
    assert len(some) > 1
    design = size_memories("block", [model], npu, CompileChoices(partitions=some))
    assert estimate(design).bram36 <= whole - 0.5
    with value_error("block: what begins with conv_1 must fit 0 BRAM36 in at most 64 slices, got 1.5"):
        partitions_for(0)
    npu = npu.changed(feature_bits=8)  # what is wrong with the whole is told, not what is wrong with its last slices
    with value_error(
        "block: what begins with conv_1 must fit 9 BRAM36 in at most 64 slices, got "
        "conv_1: its map must fit 8 bits in two's complement, got unsigned 8 bit (0..255)"
    ):
        partitions_for(9)


def test_a_chain_that_computes_no_part():
    """The refusal says so, and nothing of slices."""
    digits = zoo.load("digits-cnn")
    rule = "must have room for all 1 layers, each NPU for those of its engine, without loop for one"
    with value_error(
        "digits-cnn: what begins with conv_1 must fit 0 BRAM36 in at most 64 slices, got conv_1: a chain of 4 NPUs "
        f"{rule}, and end at one with outlet host"
    ):
        fitting_partitions(digits, pipeline([Npu.of(kfp=32, kgp=16)] * 4), 0, CompileChoices(), 32)


def test_a_network_that_fits_is_not_cut():
    """Though its first layers alone take more than all of them."""
    kind = networks.KINDS["depthwise"]
    pick = Pick("auto", "depthwise", 1)
    network = kind.network(pick)
    npus = networks._npus(pick, kind)
    model = networks._model(network, 1, npus)
    first = size_memories("first", [partition(model, 0, 2, 1, npus)[0].model], npus)
    whole = estimate(size_memories("whole", [model], npus)).bram36
    assert estimate(first).bram36 > whole
    assert fitting_partitions(model, npus, whole, CompileChoices(), 32) == {}


def test_the_message_has_the_blocks_of_the_board(monkeypatch):
    """Where a design for all cuts is larger than its parts, fewer blocks are tried, at last too few for any cuts."""
    npu = Npu.of(kfp=4, kgp=2, **IN_BLOCKS)
    monkeypatch.setattr(partitioning._Partitioner, "together", lambda self, partitions, most: most + 3)
    with value_error("block: memories of all partitions must fit 9 BRAM36, got 12 at last"):
        fitting_partitions(residual(), (npu,), 9, CompileChoices(), 32)


def test_one_memory_gets_smaller_where_that_takes_fewest_programs():
    """Early maps wait in a large skip store, and late layers have many weights: smaller kernel memories are enough, by
    which two layers are cut. If every partition had to be smaller, there would be 8 programs."""
    same = "3x3 s8 padding=1"
    early = f"conv_1 16 {same}, act_1 u8, conv_2 16 {same}, act_2 s9, add_3 act_1 act_2 u8"
    late = f"conv_4 64 {same} stride=4, act_4 u8, conv_5 64 {same}, act_5 u8, conv_6 64 {same}, act_6 u8"
    model = seeded(network_of("32x32x8 u8", early, late, name="late"))
    npu = Npu.of(kfp=8, kgp=8, raster=True, **IN_BLOCKS)
    cuts = fitting_partitions(model, (npu,), 20, CompileChoices(), 32)
    assert cuts == {"conv_1": 1, "conv_5": 2, "conv_6": 2}
    assert estimate(size_memories("late", [model], npu, CompileChoices(partitions=cuts))).bram36 <= 20


@pytest.mark.slow
def test_mobilenet_of_width_1_on_an_xc7z020(tmp_path: Path) -> None:
    network, figures = on_pynq_z1("mobilenet")
    assert figures == {"lut": 23_171, "bram36": 138, "dsp": 200, "programs": 19, "loaded": 551_054, "cycles": 1_927_032}
    assert megabytes_to_read(network, tmp_path / "mobilenet.program.npz") < 20


@pytest.mark.slow
def test_resnet_18_on_an_xc7z020(tmp_path: Path) -> None:
    """Blocks are cut in their middle, and the layers that add are in slices."""
    network, figures = on_pynq_z1("resnet18")
    assert figures == {
        "lut": 16_988,
        "bram36": 137,
        "dsp": 216,
        "programs": 62,
        "loaded": 1_653_292,
        "cycles": 6_848_121,
    }
    assert megabytes_to_read(network, tmp_path / "resnet18.program.npz") < 40


@pytest.mark.slow
def test_a_partition_of_mobilenet_with_the_lanes_of_a_zcu104() -> None:
    """Of 32 x 64 lanes, on a design of its own: results are golden's, cycles the flow model's."""
    npu = folding_of("mobilenet", "zcu104")
    program_models = partitions(mobilenet(1.0), {"conv_23": 1, "conv_25": 1}, [npu])
    choices = CompileChoices(map_order="raster", repeat_input=True)
    design = size_memories("zcu104", [program_models[1].model], npu, choices, stream_bits=STREAM_BITS)
    compare(design, program_models[1].model, choices, batches=(1, 2))


def on_pynq_z1(name: str) -> tuple[CompiledNetwork[Program], dict[str, float]]:
    """The compiled network; area by the model, programs, stream words of all parameters, and cycles of a frame that
    equals golden's."""
    compiled = built(name, "pynq-z1")
    model = compiled.model
    area = estimate(compiled.design)
    assert compiled.board.holds(area)
    bit, manifest = overlay(compiled.design)
    network = for_design(compiled.network, manifest.digest)
    images = random_images(model.network, 1, 0)
    with loaded(bit, network, timeout_cycles=20_000_000) as (accelerator, _):
        np.testing.assert_array_equal(accelerator.predict(images), packed.forward(model, images))
        cycles = accelerator.counters()["cycles"]
    return network, {
        "lut": area.device_lut,
        "bram36": area.bram36,
        "dsp": area.dsp,
        "programs": len(network.programs),
        "loaded": sum(program.parameters.size for program in network.programs) * 32 // STREAM_BITS,
        "cycles": cycles,
    }


def for_design(network: CompiledNetwork[Program], digest: str) -> CompiledNetwork[Program]:
    """The network as it is compiled for the design whose Verilog has this digest."""
    assert isinstance(network, PartitionedProgram)
    turns = tuple(replace(turn, program=replace(turn.program, design_digest=digest)) for turn in network.turns)
    return replace(network, programs_in_turn=turns)
