import dataclasses
import re

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.packing import to_bits, unpack
from bitloom.hls_gen.design import compiled_network
from bitloom.hls_gen.design import program as program_file
from bitloom.hls_gen.design.array_file import array_digest
from bitloom.hls_gen.design.frame_layout import FrameLayout, ResultMap
from bitloom.hls_gen.design.program import Program
from tests.cases import random_values
from tests.driver.design import MODEL_DIGEST, manifest, model, program
from tests.errors import value_error

RNG = np.random.default_rng(7)
ENCODINGS = [BIPOLAR, TERNARY, bipolar(3), signed(8), unsigned(8), signed(5), unsigned(1), unsigned(12), signed(17)]


SIGNED8 = signed(8)


PAIRS = np.zeros((3, 2), np.int32)


def any_program(encoding=SIGNED8, shape=(2, 3, 5), **changes):
    """Image bits in random order, each at least once, between constants: a frame of one group of the only position."""
    source = Map(height=shape[0], width=shape[1], channels=shape[2], encoding=encoding)
    bits = source.size * encoding.bits
    choice = np.concatenate([np.arange(bits), RNG.integers(-2, bits, 45)])
    choice = np.concatenate([choice, np.full(-len(choice) % 32, -1)])
    lanes = RNG.permutation(choice).astype(np.int32).reshape(-1, 32)
    values = {"name": "p", "design_digest": "0" * 64, "model_digest": MODEL_DIGEST, "input": source}
    values |= {"output_shape": (1, 2, 3), "output_kind": "raw", "classes": ("a", "b", "c"), "ideal_cycles": 12}
    values |= {"layers": (("one", 5), ("two", 7)), "parameters": np.arange(9, dtype=np.uint32), "stream_bits": 32}
    values |= {"frame": frame(channels=source.size, lanes=lanes), "results": (result(),)}
    return Program(**(values | changes))


def frame(**changes):
    """A layout of bits, of one position."""
    arrays = {"positions": np.zeros((1, 1), np.int32), "lanes": np.zeros((1, 32), np.int32)}
    values = {"channels": 30, **arrays, "lane_bits": 1, "word_bits": 32}
    return FrameLayout(**(values | changes))


def result(**changes):
    """Six raw values among eight words."""
    places = np.array([[5], [1], [2], [0], [7], [4]], np.int32)
    values = {"first": 0, "positions": 1, "words": 8, "lanes": 1, "lane_bits": 32, "places": places}
    return ResultMap(**(values | changes))


def bits_of_results(places):
    """Six values of bits in two words."""
    return (result(words=1, lanes=64, lane_bits=1, places=np.array(places, np.int32)),)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_pack_images(encoding, dtype, monkeypatch):
    monkeypatch.setattr(program_file, "CHUNK_WORDS", 40)  # several chunks, the last one short
    p = any_program(encoding)
    images = random_values((11, 2, 3, 5), encoding, RNG).astype(dtype)
    words = p.pack_images(images)
    assert (words.dtype, words.shape) == (np.uint32, (11, p.payload_words))
    bits = to_bits(images, encoding).reshape(11, -1)
    np.testing.assert_array_equal(p.frame_source, p.frame.lanes.ravel())
    expected = np.where(p.frame_source >= 0, bits[:, p.frame_source], p.frame_source == -2)
    np.testing.assert_array_equal(unpack(words, 32 * p.payload_words), expected)
    out = np.zeros((11, p.payload_words + 4), np.uint32)
    p.pack_images(images, out=out[:, 4:])
    np.testing.assert_array_equal(out[:, 4:], words)


def test_pack_no_images():
    assert any_program().pack_images(np.zeros((0, 2, 3, 5), np.int8)).shape == (0, any_program().payload_words)


@pytest.mark.parametrize(
    ("encoding", "images", "message"),
    [
        (signed(8), np.zeros((2, 3, 5), int), "images must have shape (N, 2, 3, 5), got (2, 3, 5)"),
        (signed(8), np.zeros((1, 2, 5, 3), int), "images must have shape (N, 2, 3, 5), got (1, 2, 5, 3)"),
        (signed(8), [1], "images must have shape (N, 2, 3, 5), got list"),
        (signed(8), np.zeros((1, 2, 3, 5)), "images: values must be integers, got dtype float64"),
        (
            signed(8),
            np.ma.masked_array(np.full((1, 2, 3, 5), 128), True),
            "images: values must not be masked, got a masked array: say its values with filled()",
        ),
        (signed(8), np.full((1, 2, 3, 5), 128), "images: values must be signed 8 bit (-128..127), got 128"),
        (signed(8), np.full((1, 2, 3, 5), 200, np.uint8), "images: values must be signed 8 bit (-128..127), got 200"),
        (unsigned(8), np.full((1, 2, 3, 5), -1, np.int8), "images: values must be unsigned 8 bit (0..255), got -1"),
        (BIPOLAR, np.zeros((1, 2, 3, 5), int), "images: values must be bipolar 1 bit (-1..1 in steps of 2), got 0"),
    ],
)
def test_wrong_images(encoding, images, message):
    with value_error(f"p: {message}"):
        any_program(encoding).pack_images(images)


def test_a_wrong_value_in_a_later_chunk(monkeypatch):
    monkeypatch.setattr(compiled_network, "CHECKED_VALUES", 1)
    images = np.ones((5, 2, 3, 5), np.int8)
    images[4, 1, 2, 4] = 2
    with value_error("p: images: values must be bipolar 1 bit (-1..1 in steps of 2), got 2"):
        any_program(BIPOLAR).check_images(images)


def test_unpack_raw():
    words = np.arange(16, dtype=np.uint32)
    words[5] = 0xFFFFFFFE
    out = any_program().unpack_results(words)
    assert out.dtype == np.int64
    assert out.tolist() == [[[[-2, 1, 2], [0, 7, 4]]], [[[13, 9, 10], [8, 15, 12]]]]


def test_unpack_raw_into_narrow_integers():
    words = np.zeros(8, np.uint32)
    words[5] = 127
    assert any_program().unpack_results(words, np.empty((1, 1, 2, 3), np.int8)).max() == 127
    words[5] = 128
    with value_error("p: results must be -128..127, got 128"):
        any_program().unpack_results(words, np.empty((1, 1, 2, 3), np.int8))


def test_unpack_bits():
    places = [[0, 33], [1, 34], [2, 2], [31, 63], [4, 5], [6, 7]]
    p = any_program(output_kind="bits", results=bits_of_results(places))
    assert p.result_words == 2
    out = p.unpack_results(np.array([0b11000101 | 1 << 31, 0b110 | 1 << 31], np.uint32))
    assert out.tolist() == [[[[2, 0, 2], [2, -2, 2]]]]


def test_unpack_needs_whole_frames():
    with value_error("p: results must be n * 8 words, got 9"):
        any_program().unpack_results(np.zeros(9, np.uint32))


def test_classify():
    outputs = np.array([[[[1, 5, 5], [0, 0, 2]]], [[[7, -1, 2], [6, 6, 6]]]])
    assert any_program().classify(outputs).tolist() == [1, 0]
    assert any_program().classify(outputs[:0]).tolist() == []


def test_several_outputs_have_no_class(tmp_path):
    any_program(output_maps=2).save(tmp_path / "a.npz")
    several = Program.load(tmp_path / "a.npz")
    with value_error("p: classes are of networks with one output, got 2"):
        several.classify(np.zeros((1, 1, 2, 3), np.int64))
    with value_error("p: output_maps must be >= 1, got 0"):
        any_program(output_maps=0)


def test_the_class_of_single_bits_is_the_last_that_is_set():
    """As BNN-PYNQ's boards tell LFC's classes, and as `bitloom evaluate` does."""
    outputs = np.full((3, 1, 2, 3), -1)
    outputs.reshape(3, 6)[[0, 0, 1], [1, 4, 5]] = 1
    p = any_program(output_kind="bits", results=bits_of_results(np.arange(6)[:, None]))
    assert p.classify(outputs).tolist() == [4, 5, 0]
    assert p.classify(outputs[:0]).tolist() == []


def same(a, b):
    assert a.to_bytes() == b.to_bytes()
    for field in dataclasses.fields(Program):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if isinstance(left, np.ndarray):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
        elif field.name not in ("frame", "results"):
            assert left == right, field.name


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_save_and_load(tmp_path, stream_bits):
    for p in (any_program(), program(model(), manifest(stream_bits))):
        p.save(tmp_path / "a.npz")
        p.save(tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
        same(Program.load(tmp_path / "a.npz"), p)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.npz", "b.npz"]
    with np.load(tmp_path / "a.npz") as plain:  # an ordinary npz
        layouts = ["frame_lanes", "frame_positions", "header", "parameters", "result_maps", "result_places"]
        assert sorted(plain) == ["digest", *layouts]


def arrays_of(path):
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("name", ["header", "parameters", "frame_lanes", "result_maps", "weights_before", "weights"])
def test_content_that_was_changed_is_refused_though_the_zip_is_whole(tmp_path, name):
    path = tmp_path / "a.npz"
    any_program(weights=np.arange(5, dtype=np.uint32), weights_before=2).save(path)
    arrays = arrays_of(path)
    digest = arrays["digest"].tobytes().hex()
    if name == "header":
        header = arrays[name].tobytes().replace(b'"ideal_cycles": ', b'"ideal_cycles": 1')
        arrays[name] = np.frombuffer(header, np.uint8)
    elif arrays[name].shape:
        arrays[name].flat[0] ^= 1
    else:
        arrays[name] += 1
    np.savez(path, **arrays)
    del arrays["digest"]
    with value_error(f"{path}: the content's digest must be '{digest[:56]}..., got '{array_digest(arrays)}'"):
        Program.load(path)


def test_a_program_without_a_digest_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    any_program().save(path)
    arrays = arrays_of(path)
    del arrays["digest"]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: must hold digest.npy, got header.npy, "):
        Program.load(path)


def test_an_array_too_many_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    any_program().save(path)
    np.savez(path, **arrays_of(path), more=np.zeros(3))
    known = ["digest", "frame_lanes", "frame_positions", "header", "host", "parameters", "result_maps"]
    known += ["result_places", "tail", "weights", "weights_before"]
    listed = ", ".join(f"{name}.npy" for name in known)
    with value_error(f"{path}: must hold no arrays but {listed}, got more.npy"):
        Program.load(path)


def test_truncated_at_every_length(tmp_path):
    any_program().save(tmp_path / "a.npz")
    data = (tmp_path / "a.npz").read_bytes()
    cut = tmp_path / "cut.npz"
    for length in range(0, len(data), 37):
        cut.write_bytes(data[:length])
        with value_error(f"{cut}: must be a whole, unchanged zip archive, got: File is not a zip file"):
            Program.load(cut)


def test_a_changed_byte_is_noticed(tmp_path):
    p = any_program()
    p.save(tmp_path / "a.npz")
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[data.index(p.parameters.tobytes()) + 5] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    whole = f"{tmp_path / 'a.npz'}: must be a whole, unchanged zip archive"
    with value_error(f"{whole}, got: Bad CRC-32 for file 'parameters.npy'"):
        Program.load(tmp_path / "a.npz")


def test_foreign_files(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, weight=np.zeros(3))
    with value_error(f"{path}: must hold header.npy, got weight.npy"):
        Program.load(path)
    any_program().save(path)
    for change, message in (
        (b'"version": 3', f"{path}: header: version must be 3, got 9"),
        (b'"name": "p"', f"{path}: header: name must be a non-empty string, got None"),
    ):
        with np.load(path) as file:
            arrays = dict(file)
        text = arrays["header"].tobytes()
        assert change in text
        new = change.replace(b"3", b"9") if b"3" in change else b'"nome": "p"'
        arrays["header"] = np.frombuffer(text.replace(change, new), np.uint8)
        other = tmp_path / "y.npz"
        np.savez(other, **arrays)
        with value_error(message.replace(str(path), str(other))):
            Program.load(other)


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, header=np.array([object()], dtype=object))
    with value_error(f"{path}: header: must be an array of truth values or integers, got dtype '|O'"):
        Program.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": np.zeros(3, np.int64)}, "parameters must be uint32, got int64"),
        ({"parameters": np.zeros((1, 2), np.uint32)}, "parameters must have 1 dimensions, got 2"),
        ({"design_digest": "0" * 63}, f"design_digest must be 64 lower-case hex digits, got '{'0' * 63}'"),
        ({"output_kind": "float"}, "output_kind must be one of raw, bits, signed, got 'float'"),
        ({"output_shape": (1, 0, 3)}, "output_shape must be 3 integers >= 1, got (1, 0, 3)"),
        ({"stream_bits": 16}, "stream_bits must be 32 or 64, got 16"),
        ({"frame": frame(positions=np.zeros(3, np.int32))}, "frame_positions must have 2 axes and a value, got (3,)"),
        ({"frame": frame(positions=np.ones((2, 1), np.int32))}, "frame_positions must be -1..0, got 1..1"),
        ({"frame": frame(lanes=np.zeros((1, 32)))}, "frame_lanes must be int32, got float64"),
        ({"frame": frame(lanes=np.full((1, 32), 240, np.int32))}, "frame_lanes must be -2..239, got 240..240"),
        ({"frame": frame(lanes=np.full((1, 32), -3, np.int32))}, "frame_lanes must be -2..239, got -3..-3"),
        (
            {"frame": frame(lanes=np.zeros((1, (1 << 16) + 1), np.int32))},
            "frame_lanes must have at most 65536 lanes a word, got 65537",
        ),
        (
            {"frame": frame(positions=np.zeros((1, 2), np.int32))},
            "frame_lanes must have a lane for each of 60 values of a group, got 32",
        ),
        ({"frame": frame(channels=7)}, "channels of a frame must be a divisor of 30, the image's values, got 7"),
        ({"frame": frame(lane_bits=33)}, "lane_bits must be 1..32, got 33"),
        ({"frame": frame(word_bits=31)}, "word_bits must be >= 32, got 31"),
        ({"frame": frame(word_bits=1 << 30)}, "a frame must have at most 16777216 words, got 33554432"),
        ({"results": (result(places=np.zeros((5, 1), np.int32)),)}, "result_maps must have 6 values, got 5"),
        ({"results": (result(words=7),)}, "result_places must be 0..6, got 0..7"),
        ({"results": (result(first=-1),)}, "result_maps: the first word must be >= 0, got -1"),
        ({"results": (result(lanes=0),)}, "result_maps: lanes must be >= 1, got 0"),
        ({"results": (result(lanes=65537),)}, "result_maps: lanes must be <= 65536, got 65537"),
        (
            {"results": (result(words=5, places=np.zeros((6, 1), np.int32)),)},
            "result_places must be at most 5 lanes, got 6",
        ),
        (
            {"output_kind": "bits", "results": bits_of_results(np.zeros((6, 63)))},
            "result_places of bits values must have k = 1..62, got 63",
        ),
        ({"results": (result(lane_bits=8),)}, "result_maps: lanes of raw values must have 32..32 bits, got 8"),
        (
            {"results": (result(places=np.zeros((3, 2), np.int32)),)},
            "result_places of raw values must have k = 1, got 2",
        ),
        ({"results": (result(first=1 << 25),)}, "a result must have at most 16777216 words, got 33554440"),
        ({"classes": ("a",)}, "classes must be none or 3, got 1"),
    ],
)
def test_every_rule(changes, message):
    with value_error(f"p: {message}"):
        any_program(**changes)
