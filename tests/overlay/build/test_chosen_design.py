"""The design that was asked for: options become NPUs, topologies and choices; nothing that was said is dropped."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden import zoo as networks
from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.flat import CHOSEN
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import OF_ENGINE, Wanted, chosen_design
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import DIGITS, REFERENCE_DESIGNS
from bitloom.overlay.build.run import run
from bitloom.overlay.build.small_npu import INTEGER
from bitloom.overlay.cli.options import design_options, folding_options, wanted_of
from tests.cases import random_model
from tests.commands import call
from tests.errors import value_error
from tests.graph_text import network_of
from tests.paths import ROOT

FOLDING_PAGE = ROOT / "docs" / "how-to" / "folding.md"


def asked(*words: str) -> Wanted:
    """The choices that the words of a command line ask for."""
    requests: list[Wanted] = []

    @click.command()
    @design_options
    def command(**options: Any) -> None:
        requests.append(wanted_of(options))

    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return requests[0]


NUMBERS = {"kfp": 12, "kgp": 12, "pfp": 3, "ol": 2, "planes": 7, "shift_bits": 0, "word_lanes": 4, "accumulators": 4}
PLAIN = {"planes": 0, "shift_bits": 0}
OPTIONS = {
    **{f"--{name.replace('_', '-')} {number}": {name: number} for name, number in NUMBERS.items()},
    "--binariser 5": {"binariser_bits": 5},
    "--accumulate both": {"accumulate": "both"},
    "--collect 64 --planes 0 --shift-bits 0": {"collect": 64, **PLAIN},
    "--collect 64": {"collect": 64, **PLAIN},
    "--accumulate or": {"accumulate": "or", **PLAIN},
    "--accumulate or_words --word-lanes 4": {"accumulate": "or_words", "word_lanes": 4, **PLAIN},
    "--kernel-ram block": {"kernel_ram": "block"},
    "--raster": {"raster": True},
    "--no-raster": {"raster": False},
    "--no-pool": {"pool": False},
}


@pytest.mark.parametrize("words", OPTIONS)
def test_every_option_is_in_the_npu(words: str) -> None:
    design = chosen_design(networks.load("digits-cnn"), asked(*words.split()))
    assert design.npus == (DIGITS.changed(**OPTIONS[words]),)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "layer"),
    [
        ("--accumulate or", {"accumulate": "or"}),
        ("--accumulate or --collect 16", {"accumulate": "or"}),
        ("--accumulate or_words --word-lanes 2", {"accumulate": "or_words", "word_channels": 2}),
        ("--collect 16", {}),
        ("--accumulate or --topology pipeline", {"accumulate": "or"}),
    ],
)
def test_a_folding_without_bit_planes_runs_a_network_of_bits(tmp_path: Path, words: str, layer: dict[str, Any]) -> None:
    """The default NPU has shifts for bit planes, which PEs that OR or collect can't have: nobody asked for them."""
    conv = Conv(name="conv_1", out_channels=8, kernel=(2, 2), **layer)
    act = [] if layer.get("accumulate") == "or" else [Threshold(name="act_1")]
    network = network_of("6x5x4", conv, *act, Dense(name="dense", out_channels=3, **layer), name="bits")
    model = random_model(network, np.random.default_rng(0))
    design = chosen_design(model, asked(*words.split())).design("bits", [model])
    assert {(npu.array.planes, npu.value("shift_bits")) for npu in design.npus} == {(0, 0)}
    build = builds.build(tmp_path, design, [model])
    assert run(build, model, random_images(network, 4, 0)).bit_exact_frames == 4


@pytest.mark.parametrize(
    ("name", "words", "got"),
    [("digits-or", "--accumulate or", "or and 0"), ("digits-cnn", "--collect 64", "popcount and 64")],
)
def test_an_input_of_bit_planes_says_which_folding_weighs_them(name: str, words: str, got: str) -> None:
    model = networks.load(name)
    design = chosen_design(model, asked(*words.split()))
    needs = "an input of 6 bit planes needs an NPU that accumulates popcount or both, with collect = 0"
    with value_error(f"{name}: {needs}, got {got}"):
        design.design(name, [model])


def test_bit_planes_that_were_asked_for_are_refused_where_matches_have_no_weight() -> None:
    with value_error("npu: shift_bits must be 0 for accumulate or, got 3"):
        chosen_design(networks.load("digits-or"), asked("--accumulate", "or", "--shift-bits", "3"))


def test_there_is_an_option_for_every_value_of_a_folding() -> None:
    """But for those that follow from the network, the topology, or an option of the whole design."""
    command = click.command()(design_options(lambda **_: None))
    names = {parameter.name for parameter in command.params}
    assert {*CHOSEN} - names == {"engine", "inlets", "outlets", "stream_weights"}, "overlay/cli/options.py: an option"


def test_the_page_lists_every_option_of_a_folding() -> None:
    command = click.command()(folding_options(lambda **_: None))
    page = FOLDING_PAGE.read_text(encoding="utf-8")
    table = page[page.index("| part of the NPU | options |") :].partition("\n\n")[0]
    named = {*re.findall(r"--[a-z][a-z-]+", table)}
    options = [{*option.opts, *option.secondary_opts} for option in command.params]
    missing = [sorted(words) for words in options if not words & named]
    assert not missing, "docs/how-to/folding.md: the table of options"
    assert named <= set().union(*options)


@pytest.mark.parametrize(("engine", "key"), [(engine, key) for engine, keys in OF_ENGINE.items() for key in keys])
def test_fields_of_one_engine_are_refused_by_the_other(engine: str, key: str) -> None:
    given = {"accumulate": "or", "lut_products": ("addition",), "kernel_binariser": True, "depthwise": True}.get(key, 8)
    with pytest.raises(ValueError, match=r"^npu: .*engine|^npu: pool_scale_ram needs|^npu: word_lanes must be 0"):
        (INTEGER if engine == "binary" else Npu.of()).changed(**{key: given})


@pytest.mark.parametrize("words", ["--kgp 4", "--raster", "--accumulators 2", "--kernel-ram block", "--one-memory"])
def test_a_named_design_keeps_its_npus(words: str) -> None:
    """And each of them has what was asked for; so have the rest of the design's choices."""
    model = networks.load("digits-cnn")
    given = asked(*words.split())
    design = REFERENCE_DESIGNS["digits-cnn-pipeline"]
    chosen = chosen_design(model, replace(given, design="digits-cnn-pipeline"))
    assert chosen == replace(design, npus=tuple(npu.changed(**given.folding) for npu in design.npus))


def test_what_is_about_frames_is_for_the_npu_that_reads_them() -> None:
    given = replace(asked("--planes", "5", "--shift-bits", "0", "--buffer-words", "64"), design="digits-cnn-pipeline")
    npus = chosen_design(networks.load("digits-cnn"), given).npus
    assert [npu.array.planes for npu in npus] == [5, 0, 0, 0]
    assert [npu.ports.buffer_words for npu in npus] == [16, 64, 64, 64]


def test_choices_replace_those_of_the_design() -> None:
    words = "--map-order raster --stream-bits 64 --mapping 0,0,1,1 --dataflow conv_2=auto --dataflow conv_3=auto"
    dataflow = {"conv_2": "auto", "conv_3": "auto"}
    choices = CompileChoices(map_order="raster", mapping=(0, 0, 1, 1), dataflow=dataflow)
    design = chosen_design(networks.load("digits-cnn"), asked(*words.split()))
    assert design == replace(REFERENCE_DESIGNS["digits-cnn"], stream_bits=64, choices=choices)
    assert chosen_design(networks.load("digits-cnn"), asked("--dataflow", "auto")).choices.dataflow == "auto"


def test_a_chunk_sizes_the_buffers() -> None:
    """Maps of conv_1 are 8 x 8, of conv_2 3 x 3 behind the pool: a column of 8 tuples, one word each."""
    model = networks.load("digits-cnn")
    words = "--topology ring --npus 2 --buffer-words 2 --chunk columns:3"
    design = chosen_design(model, asked(*words.split()))
    assert (design.choices.chunk, design.choices.map_order) == ("columns:3", "auto")
    assert [npu.ports.buffer_words for npu in design.design("d", [model]).npus] == [16, 32]
    assert chosen_design(model, Wanted(choices={"chunk": "rows"})).choices.chunk == "rows"


def test_a_pipeline_has_what_its_layers_need() -> None:
    npus = chosen_design(networks.load("digits-cnn"), asked("--topology", "pipeline", "--kfp", "16")).npus
    assert [bool(npu.pool_unit) for npu in npus] == [False, True, False, False]
    assert [npu.array.planes for npu in npus] == [6, 0, 0, 0]
    assert [npu.array.kfp for npu in npus] == [16] * 4
    assert [npu.ports.outlets for npu in npus] == [("ring",)] * 3 + [("host",)]


def test_a_pipeline_of_both_engines() -> None:
    npus = chosen_design(networks.load("bnn-int8-ends"), asked("--topology", "pipeline", "--kgp", "4")).npus
    assert [npu.engine for npu in npus] == ["integer", *["binary"] * 4, "integer"]
    assert {npu.array.kgp for npu in npus} == {4}


def test_a_pipeline_of_both_engines_whose_binary_npu_reads_integers() -> None:
    """It is the default, as no NPU has both engines. The NPU of the first layer has shifts for the input's bit planes,
    and the network compiles for it."""
    network = network_of("5x4x3 s8", "conv_1 5 2x2, act_1 levels=2, dense_2 3 s4", name="integers")
    model = random_model(network, np.random.default_rng(0))
    npus = chosen_design(model).npus
    assert npus == chosen_design(model, asked("--topology", "pipeline")).npus
    assert [npu.array.kgp for npu in chosen_design(model, asked("--kgp", "4")).npus] == [4, 4]
    assert [(npu.engine, npu.value("shift_bits")) for npu in npus] == [("binary", 3), ("integer", 0)]
    assert size_memories("integers", [model], npus).npus


SHIFTS = ("--planes", "0", "--shift-bits", "3")
"""Bit planes one after another."""


@pytest.mark.parametrize("topology", ["cascade", "ring"])
def test_equal_npus(topology: str) -> None:
    npus = chosen_design(networks.load("digits-cnn"), Wanted(topology=topology, npus=3)).npus
    assert [npu.array.planes for npu in npus] == [6, 0, 0]
    assert ("ring" in npus[0].ports.inlets) == (topology == "ring")
    assert len(npus) == 3
    shifting = chosen_design(networks.load("digits-cnn"), asked("--topology", topology, "--npus", "2", *SHIFTS)).npus
    assert [npu.value("shift_bits") for npu in shifting] == [3, 0]


ONCE = "'--dataflow': must be given once, or once for each LAYER=, got"
DATAFLOWS = "output_stationary, input_stationary, input_stationary:N (N >= 2), auto"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(npus=2), "digits-cnn: several NPUs need a topology, pipeline, cascade, ring, got 2 without"),
        (Wanted(topology="pipeline", npus=3), "digits-cnn: a pipeline has an NPU for each of 4 layers, got 3"),
        (Wanted(topology="ring"), "digits-cnn: a ring must have 1..32 NPUs, got None"),
        (Wanted(topology="cascade", npus=33), "digits-cnn: a cascade must have 1..32 NPUs, got 33"),
        (Wanted(folding={"kfp": 0}), "npu: kfp must be an integer >= 1, got 0"),
        (
            Wanted(design="digits-cnn-pipeline", topology="ring", npus=2),
            "digits-cnn-pipeline: its NPUs are connected already, got topology ring",
        ),
        (
            Wanted(folding={"buffer_words": 32}),
            "digits-cnn: buffer_words needs an NPU behind another one, got 32 without",
        ),
        (
            Wanted(design="bnn-int8-ends", folding={"planes": 6}),
            "bnn-int8-ends: planes needs a binary NPU that reads frames, got 6 without",
        ),
    ],
)
def test_what_there_can_not_be_is_told(wanted: Wanted, message: str) -> None:
    with value_error(message):
        chosen_design(networks.load("digits-cnn"), wanted)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--dataflow bad", f"'--dataflow': must be [LAYER=] one of {DATAFLOWS}, got 'bad'"),
        ("--dataflow auto --dataflow auto", f"{ONCE} auto auto"),
        ("--dataflow a=auto --dataflow a=auto", f"{ONCE} a=auto a=auto"),
        ("--dataflow auto --dataflow a=auto", f"{ONCE} auto a=auto"),
        ("--mapping 0,x", "'--mapping': must be numbers with commas between them, got '0,x'"),
        (
            "--chunk rows:0",
            "'--chunk': must be one of tuples, rows, columns, perhaps with :N, N from 1 on, got 'rows:0'",
        ),
        ("--mapping 0,", "'--mapping': must be numbers with commas between them, got '0,'"),
    ],
)
def test_options_that_are_none(words: str, message: str) -> None:
    result = call("area", "digits-cnn", *words.split())
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: Invalid value for {message}"


def test_several_networks_on_one_design(tmp_path: Path) -> None:
    """And the build's listing says how it was asked for."""
    options = "--accumulate both --map-order raster --raster --dataflow auto --mapping 0,0,0,0"
    words = ["build", "digits-cnn", "digits-or", *options.split(), "--out", str(tmp_path / "two")]
    result = call(*words)
    assert result.exit_code == 0, result.output
    loaded = builds.load(tmp_path / "two")
    assert list(loaded.programs) == list(loaded.models) == ["digits-cnn", "digits-or"]
    assert loaded.design.npus[0].sequencer.raster
    assert loaded.design.npus[0].value("accumulate") == "both"
    assert sorted(loaded.command[1:]) == sorted(words)
    again = call(*words[:3], "digits-or", *words[3:])
    assert str(again.exception) == (
        "bitloom: digits-cnn: the networks of a design must have different names, got digits-or twice"
    )


BIT_EXACT = [
    "digits-cnn --topology pipeline --kfp 16 --kgp 8",
    "digits-cnn --topology cascade --npus 2 --kernel-ram block",
    "digits-cnn --topology ring --npus 2 --buffer-words 32",
    "digits-cnn --topology ring --npus 2 --chunk columns:2",
    "digits-cnn --topology pipeline --kfp 16 --kgp 8 --buffer-words 64 --chunk rows",
    "bnn-int8-ends --topology pipeline --kfp 8 --kgp 4",
    "bnn-int8-ends --topology pipeline --kfp 8 --kgp 4 --raster --map-order raster --one-memory",
    "digits-cnn --accumulators 4 --dataflow auto",
    "lfc-w1a1 --collect 64 --kfp 32 --kgp 8 --shift-bits 0",
]


@pytest.mark.slow
@pytest.mark.parametrize("words", BIT_EXACT)
def test_bit_exact(words: str, tmp_path: Path) -> None:
    name, *options = words.split()
    model = networks.load(name)
    design = chosen_design(model, asked(*options))
    build = builds.build(tmp_path, design.design(name, [model]), [model], choices=design.choices)
    assert run(build, model, random_images(model.network, 3, seed=1)).bit_exact_frames == 3
    assert builds.load(tmp_path).choices.chunk == design.choices.chunk


@pytest.mark.parametrize(("engine", "field", "value"), [("integer", "feature_bits", 9), ("binary", "shift_bits", 4)])
def test_images_of_a_camera(engine: str, field: str, value: int) -> None:
    """Values of 0..255 as they are need a bit more than signed ones."""
    weight = signed(8) if engine == "integer" else BIPOLAR
    network = network_of("5x6x3 u8", Dense(name="dense_1", out_channels=3, weight=weight), name="images")
    model = random_model(network, np.random.default_rng(5))
    assert chosen_design(model).npus[0].value(field) == value
