import io
import json
import zipfile

import numpy as np
import pytest

from bitloom.golden.file import load, model_digest, save
from bitloom.golden.network import Model
from tests.cases import cases, integer_cases
from tests.errors import value_error

CASES = dict(cases() + integer_cases())
MODEL = CASES["dense_33_31"]
MEMBERS = "bitloom.json, dense_1.weight.npy, threshold_1.direction.npy, threshold_1.threshold.npy, dense_2.weight.npy"


def rewrite(path, change) -> None:
    """Change the members of a zip file: ``change`` edits a dict of name -> bytes."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def edit_header(path, **changes) -> None:
    def change(members):
        members["bitloom.json"] = json.dumps({**json.loads(members["bitloom.json"]), **changes}).encode()

    rewrite(path, change)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.npz"
    save(MODEL, file)
    return file


@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back(name, tmp_path):
    model = CASES[name]
    save(model, tmp_path / "model.npz")
    other = load(tmp_path / "model.npz")
    assert other.network == model.network
    assert set(other.arrays) == set(model.arrays)
    for layer, arrays in model.arrays.items():
        assert set(other.arrays[layer]) == set(arrays)
        for key, array in arrays.items():
            np.testing.assert_array_equal(other.arrays[layer][key], array)
    assert model_digest(other) == model_digest(model)


def test_the_same_model_gives_the_same_bytes_whatever_its_dtypes_and_order(path, tmp_path):
    arrays = {
        name: {key: np.asfortranarray(a.astype(np.int16)) for key, a in reversed(arrays.items())}
        for name, arrays in reversed(MODEL.arrays.items())
    }
    save(Model(MODEL.network, arrays), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
    save(load(path), tmp_path / "loaded.npz")
    assert (tmp_path / "loaded.npz").read_bytes() == path.read_bytes()


def test_the_digest_depends_on_every_part_of_the_model():
    seen = {model_digest(model) for model in CASES.values()}
    assert len(seen) == len(CASES)
    flipped = MODEL.arrays["dense_2"]["weight"].copy()
    flipped.flat[40] *= -1
    assert model_digest(Model(MODEL.network, {**MODEL.arrays, "dense_2": {"weight": flipped}})) not in seen


def test_a_truncated_file_is_refused(path):
    data = path.read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with value_error(f"{path}: must be a whole, unchanged zip archive, got: File is not a zip file"):
            load(path)


def test_a_changed_byte_is_refused(path):
    data = bytearray(path.read_bytes())
    data[data.index(MODEL.arrays["dense_1"]["weight"].astype(np.int8).tobytes())] ^= 0xFE
    path.write_bytes(data)
    with value_error(f"{path}: must be a whole, unchanged zip archive, got: Bad CRC-32 for file 'dense_1.weight.npy'"):
        load(path)


def loaded_digest(path) -> str:
    """The digest of what the file holds, or "refused"."""
    try:
        return model_digest(load(path))
    except ValueError as e:
        return "refused" if str(e).startswith(f"{path}: ") else str(e)


def test_no_flipped_bit_and_no_cut_gives_another_model_or_another_error(tmp_path):
    """A random bit of every second byte of a small file: what loads all the same (a changed date) is the same model."""
    file = tmp_path / "model.npz"
    rng = np.random.default_rng(1)
    save(CASES["fan_in_1"], file)
    good = file.read_bytes()
    damaged = [good[:i] + bytes([good[i] ^ 1 << rng.integers(8)]) + good[i + 1 :] for i in range(0, len(good), 2)]
    results = []
    for data in [*damaged, *(good[:i] for i in range(0, len(good), 7))]:
        file.write_bytes(data)
        results.append(loaded_digest(file))
    assert set(results) == {"refused", model_digest(CASES["fan_in_1"])}
    assert results.count("refused") > len(good) // 4


def test_another_file_is_refused(path):
    path.write_bytes(b"no zip at all, but long enough to be read as one, or so it might seem")
    with value_error(f"{path}: must be a whole, unchanged zip archive, got: File is not a zip file"):
        load(path)
    np.savez(path, a=np.zeros(3), b=np.zeros(2))
    with value_error(f"{path}: must be a model file, with a member bitloom.json, got a.npy, b.npy"):
        load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bitloom.json", "{}" * 50)
    with value_error(f"{path}: members must be stored without compression and encryption, got 'bitloom.json'"):
        load(path)
    with zipfile.ZipFile(path, "w"):
        pass
    with value_error(f"{path}: must be a model file, with a member bitloom.json, got no member"):
        load(path)


def test_pickled_objects_are_refused(path):
    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}], object), allow_pickle=True)
    rewrite(path, lambda members: members.update({"dense_1.weight.npy": out.getvalue()}))
    with value_error(
        f"{path}: dense_1.weight: must be an npy array of numbers of shape (31, 1, 1, 33), "
        f"got header {out.getvalue()[:128]!r}"
    ):
        load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "bitloom.json: version must be 1, got 2"),
        ({"format": "something"}, "bitloom.json: format must be 'bitloom model', got 'something'"),
        (
            {"author": "x"},
            "bitloom.json: keys must be digest, format, network, version, got author, digest, format, network, version",
        ),
        ({"digest": "0"}, f"the content's digest must be '0', got '{model_digest(MODEL)}'"),
        (
            {"network": []},
            "network description: a field is missing or unknown: list indices must be integers or slices, not str",
        ),
    ],
)
def test_another_header_is_refused(path, changes, message):
    edit_header(path, **changes)
    with value_error(f"{path}: {message}"):
        load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "bitloom.json: format must be 'bitloom model', got []"),
        (b"1 2", "bitloom.json must be JSON, got: Extra data: line 1 column 3 (char 2)"),
    ],
)
def test_a_header_that_is_none_is_refused(path, text, message):
    rewrite(path, lambda members: members.update({"bitloom.json": text}))
    with value_error(f"{path}: {message}"):
        load(path)


def test_changed_content_is_refused_by_its_digest(path):
    """With a proper CRC: someone wrote the file anew."""

    def flip(members):
        members["dense_2.weight.npy"] = members["dense_2.weight.npy"][:-1] + (
            b"\x01" if members["dense_2.weight.npy"][-1:] == b"\xff" else b"\xff"
        )

    changed = MODEL.arrays["dense_2"]["weight"].copy()
    changed.flat[-1] *= -1
    digest = model_digest(Model(MODEL.network, {**MODEL.arrays, "dense_2": {"weight": changed}}))
    rewrite(path, flip)
    with value_error(f"{path}: the content's digest must be '{model_digest(MODEL)}', got '{digest}'"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m.pop("dense_2.weight.npy"),
            f"members must be {MEMBERS}, got {MEMBERS.rsplit(', ', 1)[0]}",
        ),
        (lambda m: m.update({"z.npy": b""}), f"members must be {MEMBERS}, got {MEMBERS}, z.npy"),
        (
            lambda m: m.update({"dense_2.weight.npy": m["dense_2.weight.npy"][:-2]}),
            "dense_2.weight: an array of shape (3, 1, 1, 31) needs 93 bytes, got 91",
        ),
        (
            lambda m: m.update({"dense_2.weight.npy": b""}),
            "dense_2.weight: must be an npy array of numbers of shape (3, 1, 1, 31), got header b''",
        ),
        (
            lambda m: m.update({"dense_2.weight.npy": m["dense_2.weight.npy"][:-1] + b"\x05"}),
            "dense_2.weight: values must be bipolar 1 bit (-1..1 in steps of 2), got 5",
        ),
    ],
)
def test_other_members_are_refused(path, change, message):
    rewrite(path, change)
    with value_error(f"{path}: {message}"):
        load(path)
