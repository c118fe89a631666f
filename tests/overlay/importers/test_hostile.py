"""Small files that ask for very much are refused at once, or imported in the memory that others take."""

import subprocess
import sys

import numpy as np
import pytest

from bitloom.overlay.importers import verify as verify_module
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_graph, read_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.verify import verify
from tests.errors import value_error
from tests.paths import ROOT

from .hostile import HOSTILE, begun, grouped, layers, mean
from .onnx_files import Chain

OF_SHAPES = ["ConstantOfShape", "Expand", "Range", "Tile"]
MANY = ["4,900 products", "4,900 tiny products", "4,900 clips", "50,000 nodes", "24,000 thresholds"]
MANY += ["2,400 sums of a constant", "groups"]
OTHERS = ["texts", "a wide window", "dilations past the map", "numbers of 1e38", "NaN weights"]
QUICK = [*OF_SHAPES, *MANY, *OTHERS]
TAKES_MB = 1000
CHILD = """
import sys
from tests.memory import peak_mb
from tests.overlay.importers.hostile import HOSTILE
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
data = HOSTILE[sys.argv[1]]()
before = peak_mb()
try:
    import_graph(to_graph(data), name="x")
except ValueError as e:
    print(str(e).splitlines()[0])
print(peak_mb() - before)
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", QUICK)
def test_refused_or_imported(name):
    data = HOSTILE[name]()
    with pytest.raises(ValueError, match=r"must|at most|scale") as refused:
        import_graph(to_graph(data), name="x")
    assert all(len(line) < 300 for line in str(refused.value).splitlines())


def test_dilations_take_no_weights_for_what_lies_between():
    """Of nine taps, 4,096 positions apart, one lies on the map."""
    imported = import_graph(to_graph(HOSTILE["dilations"]()), name="x")
    assert [array.shape for array in imported.model.arrays["conv_1"].values()] == [(1, 3, 3, 1)]
    assert imported.model.network.output.shape == (60, 60, 1)


def test_numbers_at_the_ends_of_floating_point():
    """Denormal scales and variances, huge means: what is imported is right."""
    imported = import_graph(to_graph(HOSTILE["denormal and huge"]()), name="x")
    assert len(verify(imported, 4)) > 4


@pytest.mark.slow  # a process each, for their memory
@pytest.mark.parametrize("name", HOSTILE)
def test_memory(name):
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, name], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    megabytes = float(ran.stdout.splitlines()[-1])
    assert megabytes < TAKES_MB, ran.stdout


def lines_of(data):
    with pytest.raises(ImportRefused) as refused:
        import_graph(to_graph(data), name="x")
    return refused.value.lines


def test_constants_have_a_budget_of_work(monkeypatch):
    """The user's to change; nothing behind the node where it ends is looked at."""
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_STEPS", "20000000")
    assert lines_of(HOSTILE["2,400 sums of a constant"]()) == (
        "ConstantOfShape_1 (ConstantOfShape): the network: steps of work to import it must be <= 20,000,000 "
        "(environment variable BITLOOM_MAX_IMPORT_STEPS sets another limit), got 67,122,692",
    )
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_STEPS", "100000000")
    (line,) = lines_of(HOSTILE["1,500 quantised constants"]())
    assert line.startswith("Quant_2 (Quant): the network: steps of work to import it must be <= 100,000,000 (")


def test_constants_have_a_budget_of_memory(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_MB", "100")
    assert lines_of(HOSTILE["many ConstantOfShape"]()) == (
        "ConstantOfShape_2 (ConstantOfShape): the network: MB of memory to import it must be <= 100 (environment "
        "variable BITLOOM_MAX_IMPORT_MB sets another limit), got 128",
    )


@pytest.mark.slow
def test_a_quantised_constant_takes_memory_for_its_integers_too(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_MB", "10")
    (line,) = lines_of(HOSTILE["1,500 quantised constants"]())
    assert line.startswith("Quant_2 (Quant): the network: MB of memory to import it must be <= 10 (")


def test_weights_between_all_channels_have_a_limit(monkeypatch):
    """The means of 64 maps of 8 x 8 are sums of 64 taps in 64 channels."""
    monkeypatch.setenv("BITLOOM_MAX_PLAIN_MB", "1")
    assert lines_of(mean(64, 8).bytes()) == (
        "GlobalAveragePool_6 (layer conv_3): MB of memory for weights between all channels must be <= 1 (environment "
        "variable BITLOOM_MAX_PLAIN_MB sets another limit), got 2",
    )


def test_both_engines_say_why_they_refuse(monkeypatch):
    """The integer engine comes first and is beyond the limit; the binary one, which comes then, has another reason."""
    monkeypatch.setenv("BITLOOM_MAX_PLAIN_MB", "1")
    limit, ternary = lines_of(grouped(400).bytes())
    assert limit.startswith(
        "on the integer engine: Conv_2 (layer conv_1): MB of memory for weights between all channels"
    )
    assert ternary.startswith("Conv_2 (layer conv_1): ternary weights without a threshold need a bipolar map")


def test_the_budget_grows_with_the_constants_of_the_file(monkeypatch):
    """A byte allows 2,048 steps, so that weights alone never end it."""
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_STEPS", "1")
    chain = Chain((2, 6, 6)).quant(0.5, 3).node("Conv", np.ones((64, 2, 3, 3), np.float32)).quant(4, 3)
    assert import_graph(to_graph(chain.bytes()), name="x").model.network.output.channels == 64


def test_more_thresholds_than_values():
    assert lines_of(HOSTILE["24,000 thresholds"]()) == (
        "Conv_1: the map behind it must have at most 512 values, got 24,001",
    )


def test_a_constant_of_texts():
    assert lines_of(HOSTILE["texts"]()) == ("Cast_2 (Cast): a constant must be cast to a type of numbers, got type 8",)


def test_an_attribute_twice():
    model = begun().node("Conv", np.ones((3, 2, 3, 3), np.float32), group=1).model()
    model.graph.node[1].attribute.add().CopyFrom(model.graph.node[1].attribute[0])
    with value_error("Conv_1: attributes must be given once, got group again"):
        to_graph(model.SerializeToString())


def test_images_are_verified_in_parts(monkeypatch):
    """As many values and ties as all at once."""
    imported = import_graph(to_graph(layers(3).bytes()), name="x")
    once = verify(imported, 5)
    monkeypatch.setattr(verify_module, "MOST_AT_ONCE", 1)
    assert verify(imported, 5) == once
    assert [checked.values for checked in once if "operations" not in checked.against] == [6 * 8] * 6
    assert {checked.values for checked in once if "operations" in checked.against} == {9 * 8}


VERIFIED = """
import numpy as np
from tests.memory import peak_mb
from tests.overlay.importers.onnx_files import Chain
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.verify import verify
weights = np.random.default_rng(0).integers(-7, 8, (16, 1024, 3, 3)).astype(np.float32)
imported = import_graph(to_graph(Chain((1024, 60, 60)).quant(0.5, 3).node("Conv", weights).bytes()), name="x")
verify(imported, 8)
print(peak_mb())
"""


@pytest.mark.slow  # a minute
def test_memory_of_the_verification():
    """A map of 3.7 million values, of which 12 images are computed."""
    ran = subprocess.run(
        [sys.executable, "-c", VERIFIED], capture_output=True, text=True, cwd=ROOT, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < TAKES_MB


def external(tmp_path, *, location, offset=0, length=None, content=bytes(range(32)), shape=(4, 2), kind=1):
    """A file whose weights lie beside it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.bin").write_bytes(content)
    (tmp_path / "outside.bin").write_bytes(content)
    (tmp_path / "model" / "link.bin").symlink_to(tmp_path / "outside.bin")
    (tmp_path / "model" / "loop.bin").symlink_to("loop.bin")
    chain = Chain((shape[0],)).quant(0.5, 3)
    model = chain.node("MatMul", "w").model()
    tensor = model.graph.initializer.add(name="w", data_type=kind, dims=shape, data_location=1)
    entries = {"location": location, "offset": str(offset), **({} if length is None else {"length": str(length)})}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    path = tmp_path / "model" / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(("kind", "content"), [(1, bytes(range(32))), (11, bytes(range(64)))], ids=["32", "64"])
def test_external_data(tmp_path, kind, content):
    """8 bytes a value at most, as numbers of double precision have."""
    graph = read_graph(external(tmp_path, location="weights.bin", kind=kind, content=content))
    assert graph.constants["w"].tobytes() == content


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"location": "../outside.bin"}, "external data must lie in the model's folder, got ../outside.bin"),
        ({"location": "/etc/passwd"}, "external data must lie in the model's folder, got /etc/passwd"),
        ({"location": "link.bin"}, "external data must lie in the model's folder, got link.bin"),
        ({"location": "."}, "external data must be a file, got ."),
        ({"location": "none.bin"}, "external data must be a file, got none.bin"),
        ({"location": ""}, "external data needs a folder and a location"),
        ({"location": "weights.bin", "offset": 40}, "external data must lie inside of the file, got bytes 40..40"),
        ({"location": "weights.bin", "offset": -4}, "external data must lie inside of the file, got bytes -4..32"),
        ({"location": "weights.bin", "length": 33}, "external data must lie inside of the file, got bytes 0..33"),
        (
            {"location": "weights.bin", "offset": 30, "length": 3},
            "external data must lie inside of the file, got bytes 30..33",
        ),
        ({"location": "weights.bin", "length": 99}, "external data must lie inside of the file, got bytes 0..99"),
        ({"location": "weights.bin", "content": bytes(65)}, "external data must have at most 64 bytes, got 65"),
        ({"location": "weights.bin", "offset": "x"}, "invalid literal for int() with base 10: 'x'"),
        ({"location": "a" * 5000}, None),
        ({"location": "a\0b"}, None),
        ({"location": "loop.bin"}, None),
    ],
)
def test_external_data_that_is_refused(tmp_path, changes, reason):
    path = external(tmp_path, **changes)
    with pytest.raises(ValueError, match="constant w") as refused:
        read_graph(path)
    text = str(refused.value)
    assert text.startswith(f"{path}: constant w: must be a whole tensor of shape (4, 2), got: ")
    assert reason is None or text.endswith(f"got: {reason}")
    assert text.isprintable()
    assert len(text) < 600 + len(str(path))
