"""Zip archives: measured before they are unpacked."""

import io
import zipfile

import numpy as np
import pytest

from bitloom.golden.reading.archive import Archive, read_archive
from tests.errors import value_error


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


def test_what_numpy_writes_is_read(tmp_path):
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", one=np.arange(3), two=np.array("text"))
        archive = read_archive(tmp_path / "a.npz")
        assert archive.arrays == ["one", "two"]
        assert archive.array("one").tolist() == [0, 1, 2]
        assert str(archive.array("two", "U")) == "text"
        assert bool(archive.compressed) == (save is np.savez_compressed)


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    data = archive(("a.npy", bytes(3 << 20)), ("b.npy", bytes(3 << 20)), method=zipfile.ZIP_DEFLATED)
    assert len(data) < 10_000
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "11")
    with value_error(
        "its members: MB of memory to read it must be <= 11 "
        "(environment variable BITLOOM_MAX_READ_MB sets another limit), got 12"
    ):
        Archive(data)
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "12")
    assert len(Archive(data).read("a.npy")) == 3 << 20
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "12MB")
    with value_error("BITLOOM_MAX_READ_MB: must be an integer >= 1, got '12MB'"):
        Archive(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_unpacks_in_pieces_of_any_size_is_refused(method):
    with value_error("must be stored or deflated, without encryption, got 'a.npy'"):
        Archive(archive(("a.npy", bytes(100)), method=method))


def test_encryption_is_refused():
    """Bit 0 of the flags, which stand at different places of a member's header and of the directory's entry."""
    data = bytearray(archive(("a.npy", b"content")))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + place] |= 1
    with value_error("must be stored or deflated, without encryption, got 'a.npy'"):
        Archive(bytes(data))


def test_a_member_twice_is_refused():
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = archive(("a.npy", b"1"), ("a.npy", b"2"))
    with value_error("must have every member once, got 'a.npy' twice"):
        Archive(data)


def test_what_is_missing_or_damaged_is_told():
    data = archive(("a.npy", b"content"), ("x" * 100, b""))
    with value_error("must hold b.npy, got a.npy, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."):
        Archive(data).array("b")
    with value_error("must be a whole, unchanged zip archive, got: Bad CRC-32 for file 'a.npy'"):
        Archive(data.replace(b"content", b"contend", 1)).read("a.npy")
    with value_error("must be a whole, unchanged zip archive, got: File is not a zip file"):
        Archive(data[:-1])
    with value_error("a: must be npy data, got b'conten'"):
        Archive(data).array("a")


def test_a_name_of_any_length_is_cut_off_in_the_message():
    """A member's own header says another name, which reaches far into the file."""
    data = bytearray(archive(("a.npy", bytes(3000))))
    data[26:28] = (2000).to_bytes(2, "little")  # length of the name
    with pytest.raises(ValueError, match=r"^must be a whole, unchanged zip archive, got: File name in .{1,200}\Z") as e:
        Archive(bytes(data)).read("a.npy")
    assert len(str(e.value)) == len("must be a whole, unchanged zip archive, got: ") + 200
