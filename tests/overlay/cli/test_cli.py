"""The command line: what people and scripts see."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import BashComplete

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.golden.zoo import digits
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS, REFERENCE_DESIGNS, ReferenceDesign
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.cli.options import check_place
from tests.commands import call, error
from tests.errors import OR_A_FILE, value_error
from tests.printed import row

REPORT_KEYS = {"frames", "bit_exact_frames", "accuracy_golden", "accuracy_hardware", "seconds"}
REPORT_KEYS |= {"cycles_per_frame", "ideal_cycles_per_frame", "utilisation"}


@pytest.mark.parametrize(
    "command", [command for command in sorted(bitloom.commands) if command not in ("bench", "serve")]
)
def test_help(command: str) -> None:
    """bench's commands have --json, bench itself hasn't; serve gives no result. It fits a narrow terminal."""
    assert command in call("--help").stdout
    result = call(command, "--help", terminal_width=60)
    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 60


def test_demo(tmp_path: Path) -> None:
    result = call("demo", "--frames", "12", "--stall", "0.3", "--out", str(tmp_path / "demo"))
    assert result.exit_code == 0, result.output
    for word in ("bit-exact frames", "accuracy of hardware", "cycles a frame", "utilisation", "simulated cycles"):
        assert word in result.stdout
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert set(report) >= REPORT_KEYS
    assert report["frames"] == report["bit_exact_frames"] == 12


def test_build_a_reference_design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, for all its networks."""
    npu = DIGITS.changed(accumulate="both")
    design = ReferenceDesign(network="digits-cnn", npus=(npu,), also=("digits-or",))
    monkeypatch.setitem(REFERENCE_DESIGNS, "two", design)
    assert call("build", "two", "--out", str(tmp_path)).exit_code == 0
    loaded = builds.load(tmp_path)
    assert loaded.design.name == "two"
    assert list(loaded.programs) == ["digits-cnn", "digits-or"]


def test_build_and_simulate(tmp_path: Path) -> None:
    folder = str(tmp_path / "build")
    facts = json.loads(
        call(
            "build", "digits-cnn", "--kfp", "8", "--kgp", "4", "--ol", "1", "--pfp", "3", "--out", folder, "--json"
        ).stdout
    )
    assert (facts["kfp"], facts["kgp"], facts["pfp"], facts["lanes"]) == (8, 4, 3, 32)
    said = f"bitloom build digits-cnn --out {folder} --kfp 8 --kgp 4 --pfp 3 --ol 1"
    assert " ".join(json.loads((tmp_path / "build" / "build.json").read_text())["command"]) == said
    images = np.random.default_rng(1).integers(0, 17, (5, 8, 8, 1))
    np.save(tmp_path / "images.npy", images)
    words = ["--images", str(tmp_path / "images.npy"), "--frames", "4", "--batch", "3"]
    files = ["--out", str(tmp_path / "out.npy"), "--vcd", str(tmp_path / "new/wave.vcd")]
    result = call("simulate", folder, *words, *files, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["bit_exact_frames"] == 4
    expected = networks.load("digits-cnn").forward(images[:4])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    assert (tmp_path / "new" / "wave.vcd").stat().st_size > 10_000


def test_a_raw_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["build", "digits-cnn", "--map-order", "raster", "--raw-stream", "video", "--raw-values", "4"]
    call(*options, "--board", "pynq-z2", "--out", "b")
    core = (tmp_path / "b" / "vivado" / "packetizer.tcl").read_text()
    assert "Makes packets of a raw stream with 16 beats of 32 bits a frame" in core
    refused = {
        "--raw-stream: --board must say whose sources get the raw stream, got none": options,
        "--raw-values: --raw-stream must say how frames are told apart, got 4 alone": [*options[:2], *options[6:]],
        "digits-cnn: a raw beat must be a whole part of the 64 values of a frame, got 5": [
            *options[:-1],
            *("5", "--board", "kv260"),
        ],
    }
    for said, words in refused.items():
        assert call(*words).output.splitlines()[-1] == f"bitloom: {said}"


def test_a_build_that_no_board_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitloom.overlay.cli.build.estimate", lambda design: Resources(lut=850_560, bram36=2.5))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = call("build", "digits-cnn")
    assert row(result.stdout, "board") == ["RFSoC4x2, the largest: too small"]
    assert row(result.stdout, "LUT, by formula") == ["850,560, 200%"]


@pytest.mark.usefixtures("no_plots")
def test_a_build_remembers_its_models(tmp_path: Path) -> None:
    """A model file of the user's may go away: the build has a copy, and says so if that is gone."""
    model = networks.load("digits-cnn")
    mine = Model(replace(model.network, name="mine"), model.arrays)
    file.save(mine, tmp_path / "elsewhere.npz")
    folder = tmp_path / "build"
    assert call("build", str(tmp_path / "elsewhere.npz"), "--out", str(folder)).exit_code == 0
    (tmp_path / "elsewhere.npz").unlink()
    for network in ([], ["mine"]):
        result = call("simulate", str(folder), *network, "--frames", "1", "--json")
        assert (result.exit_code, json.loads(result.stdout)["bit_exact_frames"]) == (0, 1), result.output
    copy = folder / "mine.model.npz"
    report = json.loads(call("report", str(folder), "--frames", "2", "--json").stdout)
    assert report["weights"] == f"model file {copy}"
    name, arrays = next(iter(mine.arrays.items()))
    changed = {key: -array if key == "weight" else array for key, array in arrays.items()}
    file.save(Model(mine.network, {**mine.arrays, name: changed}), copy)
    assert error("simulate", str(folder)).startswith(f"bitloom: {folder}: mine was compiled from ")
    copy.unlink()
    assert error("report", str(folder)) == (
        f"bitloom: {folder}: mine.model.npz, the model of mine, must be there, got no such file"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A build of digits-cnn."""
    place = str(tmp_path_factory.mktemp("digits") / "build")
    assert call("build", "digits-cnn", "--out", place).exit_code == 0
    return place


def test_all_images_of_a_file_run(folder: str, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((17, 8, 8, 1), int))
    given = ["simulate", folder, "--images", str(tmp_path / "images.npy")]
    assert json.loads(call(*given, "--json").stdout)["frames"] == 17
    assert error(*given, "--frames", "18") == (
        f"bitloom: --frames must be <= 17, the images in {tmp_path / 'images.npy'}, got 18"
    )


def test_streamed_weights_are_never_dropped(tmp_path: Path) -> None:
    for n, design in enumerate(("digits-cnn-pipeline", "digits-cnn")):
        folder = tmp_path / str(n)
        result = call("build", design, "--stream-weights", "--out", str(folder))
        assert result.exit_code == 0
        loaded = builds.load(folder)
        assert all(npu.loader.stream_weights for npu in loaded.design.npus)
        told = "digits-cnn: all weights stay on the device, none is streamed" in result.stderr
        assert told == (not len(loaded.program("digits-cnn").weights))


LIST = ", ".join(networks.names())


@pytest.mark.parametrize("command", ["build", "evaluate", "explore", "area", "timing", "export --qonnx"])
def test_a_misspelt_name_and_a_file_of_another_tool(command: str) -> None:
    """Every command that takes a network says which name was meant, or the line that imports the file."""
    words = command.split()
    start = f"bitloom: network: must be one of {LIST}, {OR_A_FILE}, got 'digits_cnn'"
    assert error(*words, "digits_cnn") == f"{start}; was digits-cnn meant?"
    assert error(*words, "a net/Net.onnx") == (
        "bitloom: network: must be a model file, got 'a net/Net.onnx'; import it first: bitloom import 'a net/Net.onnx'"
        " --out Net.npz"
    )
    if command in ("build", "area", "timing"):  # which take designs, too
        said = error(command, "DIGITS.CNN_Pipeline")
        assert said.endswith("got 'DIGITS.CNN_Pipeline'; was digits-cnn-pipeline meant?")


def test_errors_are_one_line(tmp_path: Path) -> None:
    names = ", ".join(networks.names())
    assert error("build", "nonet") == f"bitloom: network: must be one of {names}, {OR_A_FILE}, got 'nonet'"
    assert error("build", "digits-cnn", "--kfp", "0") == "bitloom: npu: kfp must be an integer >= 1, got 0"
    assert (
        error("build", "digits-cnn", "--planes", "4")
        == "bitloom: digits-cnn: the input must have at most 4 bit planes, got 6"
    )
    missing = error("simulate", str(tmp_path))
    assert missing == f"bitloom: {tmp_path}: must be a folder that `bitloom build` wrote, got one without build.json"
    nowhere = tmp_path / "nowhere"
    assert error("report", str(nowhere)) == (
        f"bitloom: {nowhere}: must be a folder that `bitloom build` wrote, got no such folder"
    )
    absent = tmp_path / "absent.npy"
    assert error("build", str(absent.with_suffix(".npz"))) == (
        f"bitloom: {absent.with_suffix('.npz')}: must exist, got no such file or folder"
    )
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    assert error("build", str(tmp_path / "other.npz")) == (
        f"bitloom: {tmp_path / 'other.npz'}: must be a model file, with a member bitloom.json, got weights.npy"
    )
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    foreign = error("build", str(tmp_path / "cut.npz"))
    assert foreign.startswith(f"bitloom: {tmp_path / 'cut.npz'}: ")
    for message in (missing, foreign):
        assert "\n" not in message


@pytest.mark.parametrize(
    ("words", "begun", "wanted"),
    [
        (("go",), "digits-c", ["digits-cnn"]),
        (("go",), "my", []),
        (("go", "net.onnx"), "mn", ["mnist"]),
        (("go", "net.onnx", "--board"), "zyb", ["zybo-z7-20"]),
        (("explore", "digits-cnn"), "lfc", ["lfc-w1a1"]),
        (("build",), "cifar-quick-int8-r", ["cifar-quick-int8-ring2"]),
    ],
)
def test_completion_of_names_and_of_paths(words: tuple[str, ...], begun: str, wanted: list[str]) -> None:
    """A path comes first: bash forgets the words before it."""
    items = BashComplete(bitloom, {}, "bitloom", "_BITLOOM_COMPLETE").get_completions(list(words), begun)
    assert [(item.type, item.value) for item in items] == [("file", begun), *(("plain", word) for word in wanted)]


def test_an_empty_path_is_none() -> None:
    for arguments, option in ((["build", "digits-cnn", "--out", ""], "--out"), (["train", "--plot", ""], "--plot")):
        result = call(*arguments)
        assert result.exit_code == 2
        assert result.output.splitlines()[-1] == f"Error: Invalid value for '{option}': must be a path, got ''"


@pytest.mark.parametrize(
    "words",
    [
        ("explore", "lfc-w1a1", "--save"),
        ("explore", "lfc-w1a1", "--resume"),
        ("explore", "lfc-w1a1", "--save-front"),
        ("explore", "lfc-w1a1", "--plot"),
        ("train", "--out"),
        ("learn", "--out"),
        ("build", "digits-cnn", "--out"),
        ("go", "digits-cnn", "--board", "pynq-z2", "--out"),
        ("simulate", "build", "--vcd"),
    ],
    ids=lambda words: f"{words[0]}{words[-1]}",
)
def test_what_can_not_be_written_is_told_before_the_work(words, tmp_path, monkeypatch) -> None:
    def told(path: Path) -> str:
        result = call(*words, str(path))
        assert result.exit_code == 2
        return str(result.output.splitlines()[-1].removeprefix(f"Error: Invalid value for '{words[-1]}': "))

    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    for name, kind in (("file", "file"), ("link", "link to nothing")):
        assert told(tmp_path / name / "new.svg") == f"must lie in a folder, got the {kind} {tmp_path / name}"
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path))  # as of a read-only disk
    assert told(tmp_path / "new" / "new.svg") == f"must lie in a folder that can be written to, got {tmp_path}"


def test_what_is_there_must_be_what_can_be_written_to(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("file")
    for path in (tmp_path, tmp_path / "file", tmp_path / "link", Path("/dev/null")):
        check_place(path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "file")  # as of a protected file
    for name in ("file", "link"):
        with value_error(f"must be what can be written to, got {tmp_path / name}"):
            check_place(tmp_path / name)
    check_place(tmp_path / "new")


def test_bad_images_are_told(folder: str, tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.zeros((2, 8, 8), int))
    assert error("simulate", folder, "--images", str(tmp_path / "flat.npy")) == (
        f"bitloom: {tmp_path / 'flat.npy'}: images must have shape (N, 8, 8, 1), N >= 1, got (2, 8, 8)"
    )
    (tmp_path / "text.npy").write_text("no array")
    np.savez(tmp_path / "many.npz", np.zeros((2, 8, 8, 1), int))
    first = (tmp_path / "many.npz").read_bytes()[:6]  # a zip's; the version in it is Python's choice
    np.save(tmp_path / "none.npy", np.zeros((0, 8, 8, 1), int))
    np.save(tmp_path / "dark.npy", np.full((1, 8, 8, 1), -1))
    for name, message in (
        ("text.npy", "must be npy data, got b'no arr'"),
        ("many.npz", f"must be npy data, got {first!r}"),
        ("none.npy", "images must have shape (N, 8, 8, 1), N >= 1, got (0, 8, 8, 1)"),
        ("dark.npy", "images: values must be unsigned 5 bit (0..31), got -1"),
    ):
        path = tmp_path / name
        assert error("simulate", folder, "--images", str(path)) == f"bitloom: {path}: {message}"
    assert error("simulate", folder, "--frames", "99999999") == (
        "bitloom: digits-cnn: 99,999,999 frames: MB of memory for images and results must be <= 4,096 (environment "
        "variable BITLOOM_MAX_RUN_MB sets another limit), got 112,915"
    )


def test_learn(tmp_path: Path) -> None:
    out = ["--epochs", "2", "--hidden", "8", "--out", str(tmp_path / "learn")]
    picture = tmp_path / "curves.svg"
    names = ["--setting", "float", "--setting", "codes-2"]
    result = call("learn", "digits", *names, "--seeds", "2", *out, "--plot", str(picture), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["data"], report["seeds"], report["epochs"]) == ("digits", 2, 2)
    assert [row["setting"] for row in report["settings"]] == ["float", "codes-2"]
    assert all(len(curve) == 2 for row in report["settings"] for curve in row["curves"])
    weights = 64 * 8 + 8 * 10
    row = report["settings"][1]
    assert row["parameter_bits"] == ((2 + 32) * weights + 64 * 36) / (weights + 36)
    assert row["batch_bits"] == 64 * 32 * (64 + 8 + 8 + 8 + 10)
    assert row["shifts"] == 64 * 8 + 2 * 8 * 10
    assert row["look_ups"] == 0
    assert row["discrete"]["weights"] == "2 bits by chance"
    assert picture.read_text().startswith("<?xml")
    again = call("learn", "digits", *names, "--seeds", "2", *out)  # what is there is shown
    assert f"{row['multiplications']:,.0f}" in again.stdout
    assert again.exit_code == 0
    for setting in report["settings"]:
        assert f"{100 * setting['mean']:.2f}" in again.stdout
    assert "2-bit weights, codes only, stochastic" in again.stdout


def test_learn_with_held_out_images(tmp_path: Path) -> None:
    """The seeds counted on from the first, and the images that are told."""
    out = ["--epochs", "1", "--hidden", "8", "--out", str(tmp_path), "--seeds", "2", "--first-seed", "4"]
    result = call("learn", "digits", "--setting", "float", *out, "--held-out", "--rate-times", "0.5")
    assert result.exit_code == 0, result.output
    assert "digits: 1,150 images to learn from, 287 held out, 2 seeds" in result.stdout
    for seed in (4, 5):
        run = json.loads((tmp_path / f"digits-float-{seed}.json").read_text())["run"]
        more = {"criterion": "cross_entropy", "rate_times": 0.5, "held_out": True}
        assert run["plan"] == {"hidden": [8], "epochs": 1, "seed": seed, **more}


def test_learn_on_the_machine(tmp_path: Path) -> None:
    """Several seeds, as without it; with a clock the table has cycles."""
    small = ["--hidden", "16", "--slaves", "1", "--epochs", "1", "--out", str(tmp_path / "learn")]
    picture = tmp_path / "timeline.svg"
    curves = tmp_path / "curves.svg"
    several = ["--setting", "codes-1", "--seeds", "2", "--plot", str(curves)]
    result = call("learn", "digits", "--machine", "words", *several, *small, "--json")
    assert result.exit_code == 0, result.output
    (codes,) = json.loads(result.stdout)["settings"]
    assert codes["setting"] == "codes-1"
    assert len(codes["final"]) == 2
    assert curves.read_text().startswith("<?xml")
    one = ["--machine", "interpreter", "--setting", "codes-1", "--timeline", str(picture)]
    interpreted = call("learn", "digits", *one, *small)
    assert interpreted.exit_code == 0, interpreted.output
    assert f"{100 * codes['final'][0]:.2f}" in interpreted.stdout
    assert "cycles" in interpreted.stdout
    assert "own arithmetic" in picture.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["words", "codes-2", "discrete-1"])
def test_learn_on_the_machine_in_verilator(tmp_path: Path, setting: str) -> None:
    """The same weights, so the same accuracy."""
    curves = []
    for machine in ("interpreter", "verilator"):
        words = f"--machine {machine} --epochs 2 --hidden 4 --slaves 2 --setting {setting} --batch 8".split()
        result = call("learn", "digits", *words, "--out", str(tmp_path), "--json")
        assert result.exit_code == 0, result.output
        curves.append(json.loads(result.stdout)["settings"][0]["curves"])
    assert curves[0] == curves[1]


def test_what_learned_is_a_network_for_hardware(tmp_path: Path) -> None:
    model = tmp_path / "learned.npz"
    words = ["--setting", "hardware", "--epochs", "3", "--hidden", "24", "--save", str(model)]
    result = call("learn", "digits", *words, "--out", str(tmp_path / "learn"), "--json")
    assert result.exit_code == 0, result.output
    learned = networks.find(str(model))
    data = digits.load_digits()
    scores = learned.forward(data.test_images).reshape(len(data.test_labels), -1)
    accuracy = float((scores.argmax(axis=1) == data.test_labels).mean())
    assert accuracy == pytest.approx(json.loads(result.stdout)["settings"][0]["final"][0])
    assert learned.network.name == "digits-learned"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--timeline", "x.svg"], "learn: --timeline needs --machine"),
        (["--all-settings", "--setting", "codes-1"], "learn: give --setting or --all-settings, not both"),
        (["--slaves", "8"], "learn: --slaves needs --machine"),
        (["--rate-places", "5"], "learn: --rate-places needs --machine"),
        (["--batch", "5"], "learn: --batch needs --machine"),
        (["--mu-places", "5"], "learn: --mu-places needs --machine"),
        (["--normalised"], "learn: --normalised needs --machine"),
        (["--machine", "words", "--rate-times", "1"], "learn: --rate-times must be left out with --machine"),
        (["--machine", "words", "--save", "x.npz"], "learn: --save must be left out with --machine"),
        (
            ["--machine", "interpreter", "--setting", "words", "--setting", "codes-1", "--timeline", "x.svg"],
            "learn: --timeline needs a single setting, got words, codes-1",
        ),
        (
            ["--machine", "words", "--setting", "source-codes", "--batch", "4"],
            "learning on the machine: batch must be left out where the rule has none, got 4 for source-codes",
        ),
        (
            ["--machine", "interpreter", "--setting", "binary"],
            "learn: with --machine --setting must be one of words, nearest-1, nearest-2, nearest-3, stochastic-1, "
            "stochastic-2, stochastic-3, codes-1, codes-2, codes-3, discrete-1, discrete-2, discrete-3, "
            "source-nearest, source-codes, got binary",
        ),
        (["--save", "x.npz"], "learn: --save needs --setting hardware alone, got codes-1"),
        (
            ["--save", "x.npz", "--setting", "hardware", "--held-out"],
            "learn: --save needs all training images, so not --held-out",
        ),
        (
            ["--machine", "interpreter", "--hidden", "8,0"],
            "learning: hidden layers must be 1..64, of 1..1048576 neurons, got (8, 0)",
        ),
        (
            ["--machine", "interpreter", "--first-seed", "65535"],
            "learning on the machine: seed must be 0..65534, got 65535",
        ),
        (["--rate-times", "0"], "learning: rate_times must be > 0 and finite, got 0.0"),
        (["--hidden", "8,x"], "learn: --hidden must be numbers with commas between, got '8,x'"),
        (["--hidden", "0"], "learning: hidden layers must be 1..64, of 1..1048576 neurons, got (0,)"),
        (["--plot", "x.gif"], "--plot: file name must end with .png or .svg, got x.gif"),
    ],
)
def test_wrong_options_of_learn(arguments: list[str], message: str) -> None:
    result = call("learn", "digits", *arguments)
    assert result.exit_code == 1
    assert result.output == f"bitloom: {message}\n"


@pytest.mark.usefixtures("no_plots")
def test_partitions(tmp_path: Path) -> None:
    """Named ones, and those that a board needs; a network that a board holds stays whole."""
    folder = str(tmp_path / "parts")
    facts = json.loads(
        call("build", "digits-cnn", "--partitions", "conv_2,dense_4:2", "--out", folder, "--json").stdout
    )
    assert facts["programs"] == 4
    assert builds.load(Path(folder)).choices.partitions == {"conv_2": 1, "dense_4": 2}
    assert json.loads(call("simulate", folder, "--frames", "2", "--json").stdout)["bit_exact_frames"] == 2
    assert builds.load(Path(folder)).choices_for(networks.load("digits-residual")).partitions == {}
    by_flow = json.loads(call("evaluate", folder, "--json").stdout)
    assert by_flow["hardware"]["latency_cycles"] == 1_452
    again = call("compile", "digits-cnn", "--for", folder, "--out", str(tmp_path), "--json")
    assert json.loads(again.stdout)["programs"][0]["parameter_words"] == facts["parameter_words"]
    loading = {key: by_flow["hardware"][key] for key in ("programs", "load_cycles_per_round", "frames_per_round")}
    assert (loading["programs"], loading["frames_per_round"]) == (4, 65_536)
    words = json.loads(call("report", folder, "--frames", "2", "--json").stdout)
    assert {key: words["figures"][key] for key in loading} == loading
    assert words["figures"]["frames_per_second"] == by_flow["hardware"]["frames_per_second"]
    assert "cycles at least" in call("evaluate", folder).stdout
    assert "dense_4.1, cycles a frame" in call("report", folder, "--frames", "2").stdout
    other = ["compile", "digits-cnn", "--for", folder, "--out", str(tmp_path), "--partitions"]
    more = call(*other, "conv_2,dense_4:5")
    assert more.exit_code == 0, more.output
    assert len(read_program(tmp_path / "digits-cnn.program.npz").programs) == 7
    assert error(*other, "conv_9") == (
        "bitloom: digits-cnn: a partition must begin with a layer of a network, got 'conv_9'"
    )
    assert error(*other, "conv_2", "--mapping", "0,0,0") == (
        "bitloom: mapping must be left out of a network in partitions, got [0, 0, 0]"
    )
    assert "kernel_rows must be >= " in error(*other, "none")
    auto = ["build", "digits-cnn", "--partitions", "auto", "--out", str(tmp_path / "whole")]
    assert error(*auto) == "bitloom: --partitions auto: --board must say what must hold them, got none"
    assert "programs" not in json.loads(call(*auto, "--board", "pynq-z2", "--json").stdout)
    assert error(*auto, "digits-residual", "--board", "pynq-z2") == (
        "bitloom: --partitions auto: NETWORK must be one, got 2: name the layers"
    )
    for wrong in ("conv_2:0", "conv_2,conv_2", "", "Conv"):
        assert (
            f"must be auto, or layers with commas between them, each once, perhaps with :N, N programs, got {wrong!r}"
            in (" ".join(call("build", "digits-cnn", "--partitions", wrong).output.split()))
        )
    assert error("build", "digits-cnn", "--partitions", "conv_9", "--out", folder) == (
        "bitloom: digits-cnn: a partition must begin with a layer of a network, got 'conv_9'"
    )
    mapped = ["build", "digits-cnn", "--topology", "ring", "--npus", "2", "--mapping", "0,1,0"]
    assert error(*mapped, "--partitions", "conv_2", "--out", folder) == (
        "bitloom: mapping must be left out of a network in partitions, got [0, 1, 0]"
    )


def test_a_network_that_stays_whole_beside_partitions(tmp_path: Path) -> None:
    """It has none of the layers that are named."""
    folder = str(tmp_path / "both")
    call("build", "digits-cnn", "digits-residual", "--partitions", "dense_4", "--out", folder)
    build = builds.load(Path(folder))
    assert [len(build.program(name).programs) for name in ("digits-cnn", "digits-residual")] == [2, 1]
    compiled = call("compile", "digits-residual", "--for", folder, "--out", str(tmp_path), "--json")
    assert compiled.exit_code == 0
    again = read_program(tmp_path / "digits-residual.program.npz")
    assert again.to_bytes() == build.program("digits-residual").to_bytes()
    assert not build.choices_of("digits-residual").partitions
