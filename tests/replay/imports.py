"""The model of each file that can be imported, as a digest, or why it is refused.

Files are those of the notebooks and, where they are there, those of the data folder (golden/zoo says where it is looked
for); and models that go out as QONNX and come back.
"""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from bitloom.golden import zoo
from bitloom.golden.file import model_digest
from bitloom.golden.host.file import to_bytes
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file
from tests.paths import ROOT

EXPORTED = ("digits-cnn", "cifar-quick-int8", "bnn-int8-ends")


def _files() -> list[Path]:
    places = (ROOT / "notebooks", zoo.data_folder())
    files = (path for place in places for suffix in ("onnx", "tflite") for path in place.rglob(f"*.{suffix}"))
    return sorted(files, key=lambda path: path.name)


def _line(name: str, path: Path) -> str:
    try:
        imported = import_file(path, name=name)
    except (ImportRefused, ValueError) as refusal:
        return f"{name}: refused\n{refusal}".replace(str(path), path.name)
    host = hashlib.sha256(to_bytes(imported.host)).hexdigest()
    return f"{name}: model {model_digest(imported.model)} host {host}"


def write(folder: Path) -> None:
    """Write a line for each file."""
    lines = [_line(path.stem.lower(), path) for path in _files()]
    with TemporaryDirectory() as scratch:
        for name in EXPORTED:
            path = Path(scratch) / f"{name}.onnx"
            path.write_bytes(to_qonnx(zoo.load(name)))
            lines.append(_line(f"{name}-exported", path))
    (folder / "imports.txt").write_text("\n".join(lines) + "\n")
    print("imports", flush=True)
