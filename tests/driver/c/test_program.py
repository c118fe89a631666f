"""The C side reads the programs that Python reads, and refuses what Python refuses: damaged files by the thousand, with
AddressSanitizer and UndefinedBehaviorSanitizer."""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.encoding import Encoding
from bitloom.golden.graph import INPUT
from bitloom.golden.reading.archive import Archive
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model, compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.array_file import array_bytes, array_digest, read_arrays
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import ARRAYS, TOGETHER, Program
from bitloom.overlay.fuzz.campaigns.files import damaged_file, valid_file
from bitloom.overlay.fuzz.damage import damaged
from tests.hls_gen.compiler.test_partitions import NPU as INTEGERS
from tests.hls_gen.compiler.test_partitions import begins, residual
from tests.host_outputs import ORDERS_OF_TEN

from .. import design
from .compiled import C99, CORE, SANITIZERS, build

HERE = Path(__file__).parent
FILES = 50
"""Damaged files of each sort in the default tier; the slow one reads MANY."""
MANY = 3_000
UNREAD = ("layers", "mapping", "ideal_cycles")
"""Keys of the header that are for reports: the C side doesn't look at them."""
FORMING = Npu.of(
    engine="integer", kfp=24, kgp=4, ol=2, pfp=2, feature_bits=9, weight_bits=8, acc_bits=32, window_former=True
)
TOO_LARGE = ("must be 1..16777215",)
"""Rules for numbers that no device has room for, which Python doesn't look at."""


@cache
def in_partitions() -> tuple[CompiledNetwork[Program], ...]:
    """Networks in slices that read channels of several maps, and of the image."""
    model, choices, design = begins()
    of_block = CompileChoices(partitions={"conv_2": 1, "conv_3": 2})
    block = size_memories("block", [residual()], INTEGERS, choices=of_block)
    return (
        compile_network(model, Manifest.of(design, "0" * 64), choices),
        compile_network(residual(), Manifest.of(block, "0" * 64), of_block),
    )


@cache
def folder() -> "tempfile.TemporaryDirectory[str]":
    """Where a valid file lies; it is made late, in the folder that tests have then."""
    return tempfile.TemporaryDirectory(prefix="bitloom-tests-")


@dataclass(frozen=True)
class Outcome:
    """Outcomes of bitloom_program_read for a file: ``heap`` bytes at most, and facts or a message."""

    read: bool
    heap: int
    text: str


def outcomes(paths: Sequence[Path]) -> list[Outcome]:
    program = build("read_programs", [HERE / "read_programs.c", *CORE], *C99, *SANITIZERS, "-O1")
    lines = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stderr[:3000]
    results = []
    for line in done.stdout.splitlines():
        verdict, heap, text = line.split(" ", 2)
        results.append(Outcome(verdict == "read", int(heap), text))
    assert len(results) == len(paths)
    return results


def facts(network: CompiledNetwork[Program]) -> str:
    """Output of read_programs.c on a network: also what its programs make of images and of results."""
    source = network.input
    values = int(np.prod(network.network_shape))
    parts = (network.name, *source.shape, source.encoding.low, source.encoding.high)
    ends = (values, network.output_maps, values if network.host else 0, len(network.classes), len(network.programs))
    payload = outputs = 0
    shapes = {INPUT: source.shape} | {turn.gives.map: shape_of(network, turn.gives.map) for turn in network.turns}
    for turn in network.turns:
        program = turn.program
        image = [
            some_values(program.input.encoding, shapes[part.map])[..., part.begin : part.end] for part in turn.reads
        ]
        results = (np.arange(program.result_words, dtype=np.uint64) * 2654435761).astype(np.uint32)
        payload = summed(program.pack_images(np.concatenate(image, axis=-1)[None]), payload)
        outputs = summed(program.unpack_results(results), outputs)
    return " ".join(map(str, (*parts, *ends, payload, outputs)))


def shape_of(network: CompiledNetwork[Program], name: str) -> tuple[int, int, int]:
    """Of a map that programs give."""
    last = [turn for turn in network.turns if turn.gives.map == name][-1]
    height, width, channels = last.program.network_shape
    return height, width, last.gives.begin + channels


def some_values(encoding: Encoding, shape: tuple[int, int, int]) -> np.ndarray:
    count = (encoding.high - encoding.low) // encoding.step + 1
    number = np.arange(int(np.prod(shape)), dtype=np.uint64)
    return (encoding.low + (7 * number % np.uint64(count)).astype(np.int64) * encoding.step).reshape(shape)


def summed(numbers: np.ndarray, total: int) -> int:
    """The sum that read_programs.c makes of 32-bit numbers, added to one of others."""
    for number in numbers.ravel().tolist():
        total = 31 * total + number & 0xFFFFFFFF
    return total


def python_reads(path: Path) -> CompiledNetwork[Program] | None:
    try:
        return read_program(path)
    except ValueError:
        return None


def judge(folder: Path, file_of: Callable[[int], bytes], count: int) -> Counter[str]:
    """Damage ``count`` files and compare what both readers do.

    What C reads, Python reads alike. What Python reads and C refuses, bitloom doesn't write: when Python writes the
    same program anew, C reads it.
    """
    tally: Counter[str] = Counter()
    anew = folder / "anew.npz"
    for begin in range(0, count, 200):
        paths = []
        for seed in range(begin, min(count, begin + 200)):
            paths.append(folder / f"{seed}.npz")
            paths[-1].write_bytes(file_of(seed))
        for path, result in zip(paths, outcomes(paths)):
            where = f"{path.name}: {result.text}"
            program = python_reads(path)
            assert result.heap <= 40 * path.stat().st_size + (1 << 16), where
            assert result.text.isprintable(), where
            assert len(result.text) < 400, where
            if result.read:
                assert program is not None, where
                assert result.text == facts(program), where
            else:
                assert result.text.startswith(("file: ", "digits-cnn: host")), where
                if program and not any(rule in result.text for rule in TOO_LARGE):
                    program.save(anew)
                    assert [again.text for again in outcomes([anew])] == [facts(program)], where
            tally["read" if result.read else "stricter" if program else "refused"] += 1
            path.unlink()
    return tally


def signed_partitions(seed: int) -> bytes:
    """The file of a network in partitions with other text, or other programs, and the digest that belongs to it."""
    rng = np.random.default_rng(seed)
    archive = Archive(in_partitions()[seed % 2].to_bytes())
    arrays = {name: archive.array(name) for name in archive.arrays if name != "digest"}
    programs = len(arrays) - 1
    key = ("header", "header", "header", f"program_{rng.integers(programs)}")[int(rng.integers(4))]
    if key == "header" and rng.integers(2):
        data = damaged(arrays[key].tobytes(), rng)
    elif key == "header":
        data = other_channels(arrays[key].tobytes(), rng)
    else:
        data = arrays[f"program_{rng.integers(programs)}"].tobytes()
    arrays[key] = np.frombuffer(data, np.uint8)
    if not rng.integers(20):
        del arrays[key]
    return array_bytes({**arrays, "digest": np.frombuffer(bytes.fromhex(array_digest(arrays)), np.uint8)})


def other_channels(text: bytes, rng: np.random.Generator) -> bytes:
    """A header in which a program reads or gives other channels, or maps, than it did; or none that differ."""
    header = json.loads(text)
    turn = header["turns"][int(rng.integers(len(header["turns"])))]
    names = [INPUT, *(each["gives"]["map"] for each in header["turns"])]
    what = int(rng.integers(6))
    part = [*turn["reads"], turn["gives"]][int(rng.integers(len(turn["reads"]) + 1))]
    if what == 0:
        part["map"] = names[int(rng.integers(len(names)))]
    elif what == 1:
        part[("begin", "end")[int(rng.integers(2))]] += int(rng.integers(-4, 5))
    elif what == 2:
        turn["reads"].append(part)
    elif what == 3:
        turn["reads"].reverse()
    elif what == 4:
        header["turns"].reverse()
    else:
        header["turns"].pop(int(rng.integers(len(header["turns"]))))
    return json.dumps(header).encode()


def signed(change: Callable[[dict[str, np.ndarray], np.random.Generator], None], seed: int) -> bytes:
    """A program's file with changed arrays, and the digest that belongs to them."""
    path = Path(folder().name, "valid.npz")
    path.write_bytes(valid_file("program"))
    arrays = read_arrays(path, ("header", *ARRAYS, "digest"), *TOGETHER)
    del arrays["digest"]
    change(arrays, np.random.default_rng(seed))
    return array_bytes({**arrays, "digest": np.frombuffer(bytes.fromhex(array_digest(arrays)), np.uint8)})


def damage_text(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Another header or host, but for what the C side doesn't look at."""
    key = ("header", "host")[int(rng.integers(2))]
    data = arrays[key].tobytes()
    for _ in range(100):
        text = damaged(data, rng)
        if key == "host" or not any(_other(data, text, name) for name in UNREAD):
            break
    else:
        text = data
    arrays[key] = np.frombuffer(text, np.uint8)


def _other(data: bytes, text: bytes, name: str) -> bool:
    """Whether a key of the header has another value, as far as the text can be read."""
    try:
        return json.loads(text).get(name) != json.loads(data)[name]
    except (ValueError, AttributeError, RecursionError):
        return False


def damage_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Other values, types or shapes of an array."""
    key = ARRAYS[int(rng.integers(len(ARRAYS)))]
    array = arrays[key].copy()
    what = int(rng.integers(5))
    if what == 0 and array.size:
        array.flat[int(rng.integers(array.size))] = (0, -1, -2, -3, 2**31 - 1, 62, 1)[int(rng.integers(7))] % 2**31
    elif what == 1:
        array = array.astype((np.int16, np.uint64, np.int8, bool)[int(rng.integers(4))])
    elif what == 2:
        array = array.reshape(-1)[: int(rng.integers(array.size + 1))]
    elif what == 3:
        array = np.asarray([array])
    else:
        array = np.concatenate([array.reshape(-1)] * 2)
    arrays[key] = array


def test_valid_programs_are_read(tmp_path):
    """Of every kind of output, input and host that the tests have at hand."""
    manifest = design.manifest()
    programs = [design.program(design.model(thresholds=on), manifest) for on in (False, True)]
    programs.append(replace(programs[0], output_maps=2**31 - 1))
    programs.append(replace(programs[0], classes=tuple("ä b" if i else "x" * 100 for i in range(7))))
    for npu, stream_bits in ((INTEGERS, 32), (INTEGERS, 64), (FORMING, 64)):
        block = size_memories("block", [residual()], npu, stream_bits=stream_bits)
        programs.append(compile_model(residual(), Manifest.of(block, "0" * 64)))
    paths = []
    for i, program in enumerate(programs):
        paths.append(tmp_path / f"{i}.npz")
        program.save(paths[-1])
    paths.append(tmp_path / "digits.npz")
    paths[-1].write_bytes(valid_file("program"))
    paths.append(tmp_path / "parts.npz")
    paths[-1].write_bytes(valid_file("partitions"))
    for i, network in enumerate(in_partitions()):
        paths.append(tmp_path / f"parts {i}.npz")
        network.save(paths[-1])
    for path, result in zip(paths, outcomes(paths)):
        assert result.text == facts(read_program(path))


@pytest.mark.parametrize(
    ("number", "value", "rule"),
    [
        (0, 0, "channels must be 1..2147483647"),
        (1, -1, "first word must be 0..2147483647"),
        (5, 31, "bits must be 32..32"),
        (5, 33, "bits must be 32..32"),
    ],
)
def test_numbers_of_a_map_of_results(tmp_path, number, value, rule):
    """Of raw values, which are lanes of 32 bits."""

    def change(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        arrays["result_maps"] = arrays["result_maps"].copy()
        arrays["result_maps"][0, number] = value

    path = tmp_path / "wrong.npz"
    path.write_bytes(signed(change, 0))
    (outcome,) = outcomes([path])
    assert not outcome.read
    assert outcome.text == f"file: result_maps: {rule}, got {value}"


def test_several_outputs_are_refused(tmp_path):
    """As a program is read: in Python the driver gives each by its name."""
    path = tmp_path / "two.npz"
    path.write_bytes(valid_file("program"))
    program = Program.load(path)
    first = program.host.only
    again = replace(first, name="again")
    object.__setattr__(program, "host", replace(program.host, outputs=(first, again)))
    program.save(path)
    assert len(Program.load(path).host.outputs) == 2
    (outcome,) = outcomes([path])
    assert not outcome.read
    rule = "outputs must be one, as hosts without Python take no others"
    assert outcome.text.startswith(f"digits-cnn: host: {rule}, got [")


@pytest.mark.parametrize("case", ORDERS_OF_TEN)
def test_orders_of_scores(tmp_path, case):
    pieces, places = ORDERS_OF_TEN[case]

    def change(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        host = json.loads(arrays["host"].tobytes())
        host["outputs"][0]["order"] = pieces
        arrays["host"] = np.frombuffer(json.dumps(host).encode(), np.uint8)

    path = tmp_path / "ordered.npz"
    path.write_bytes(signed(change, 0))
    (outcome,) = outcomes([path])
    assert outcome.read == bool(places)
    assert places or outcome.text.startswith("digits-cnn: host: order must have each place once, got ")


def test_what_a_header_says_of_its_outputs(tmp_path):
    """No number of maps, as most programs; one, as nobody writes it; what no program has; and no three sizes."""
    maps = [("{", f'{{"output_maps": {value}, ') for value in ("1", "2", "0", "2147483648", "null", '"2"')]
    sizes = [("[1, 1, 10]", text) for text in ("[1, 1, 10, 1]", "[1, 10]")]
    paths = []
    for number, words in enumerate([("{", "{"), *maps, *sizes]):

        def change(arrays: dict[str, np.ndarray], rng: np.random.Generator, words: tuple[str, str] = words) -> None:
            text = arrays["header"].tobytes().decode()
            assert words[0] in text
            arrays["header"] = np.frombuffer(text.replace(*words, 1).encode(), np.uint8)

        paths.append(tmp_path / f"{number}.npz")
        paths[-1].write_bytes(signed(change, 0))
    read = [outcome.read for outcome in outcomes(paths)]
    assert read == [python_reads(path) is not None for path in paths] == [True] * 3 + [False] * 6


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("frame_positions", lambda array: np.zeros((1, 100_000), np.int32), "frame_lanes must have a lane for each of"),
        ("frame_lanes", lambda array: np.full((1, 65537), -1, np.int32), "frame_lanes must have at most 65536 lanes"),
        ("frame_lanes", lambda array: np.full((1, 1000), -1, np.int32), "word_bits must be"),
        ("result_maps", lambda array: other(array, 4, 65537), "result_maps: lanes must be"),
        ("result_maps", lambda array: other(array, 3, 1), "result_places must be at most"),
        ("result_places", lambda array: np.repeat(array, 2, axis=1), "result_places"),
        ("result_places", lambda array: np.concatenate([array] * 2), "result_places must have"),
        ("result_maps", lambda array: np.concatenate([array] * 2), "result_places must have"),
        ("result_maps", lambda array: other(array, 2, 2), "result_maps must have"),
    ],
)
def test_layouts_that_take_more_than_their_words(tmp_path, key, change, message):
    """A small file takes neither much memory nor much time: lanes that are made are those of words, and of values."""

    def changed(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
        arrays[key] = change(arrays[key])

    path = tmp_path / "large.npz"
    path.write_bytes(signed(changed, 0))
    (outcome,) = outcomes([path])
    assert outcome.text.startswith(f"file: {message}")
    assert outcome.heap < path.stat().st_size
    with pytest.raises(ValueError, match=f"^[^\n]*: {message}[^\n]*$"):
        Program.load(path)


def other(maps: np.ndarray, number: int, value: int) -> np.ndarray:
    """With another number of the first map."""
    changed = maps.copy()
    changed[0, number] = value
    return changed


def test_damaged_files(tmp_path):
    """Damage as the fuzzer of Python's reader has it."""
    assert judge(tmp_path, lambda seed: damaged_file("program", seed), FILES)["refused"] > FILES // 2


def test_damaged_text_behind_right_checksums(tmp_path):
    tally = judge(tmp_path, lambda seed: signed(damage_text, seed), FILES)
    assert tally["refused"] > FILES // 2
    assert tally["read"]


def test_damaged_arrays_behind_right_checksums(tmp_path):
    tally = judge(tmp_path, lambda seed: signed(damage_array, seed), FILES)
    assert tally["refused"] > FILES // 2


def test_damaged_networks_in_partitions(tmp_path):
    assert judge(tmp_path, lambda seed: damaged_file("partitions", seed), FILES)["refused"] > FILES // 2


def test_damaged_turns_behind_right_checksums(tmp_path):
    tally = judge(tmp_path, signed_partitions, FILES)
    assert tally["refused"] > FILES // 2
    assert tally["read"]


MAKERS: dict[str, Callable[[int], bytes]] = {
    "file": lambda seed: damaged_file("program", seed),
    "text": lambda seed: signed(damage_text, seed),
    "array": lambda seed: signed(damage_array, seed),
    "partitions": lambda seed: damaged_file("partitions", seed),
    "turns": signed_partitions,
}


@pytest.mark.slow
@pytest.mark.parametrize("sort", MAKERS)
def test_many_damaged_files(tmp_path, sort):
    make = MAKERS[sort]
    assert judge(tmp_path, lambda seed: make(seed + FILES), MANY)["refused"] > MANY // 2
