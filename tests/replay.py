"""What the reference designs are, byte for byte, to be compared before and after a change: ``python -m tests.replay``.

    python -m tests.replay /tmp/before            # on the tree before the change
    python -m tests.replay /tmp/after             # after it
    diff -r /tmp/before /tmp/after

For each reference design the folder gets its Verilog for simulation and for synthesis, its manifest, and the programs
of its networks. A refactoring leaves them all as they were.
"""

import json
import sys
from pathlib import Path

from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS


def write(folder: Path, name: str) -> None:
    """Everything of the reference design ``name``, in ``folder``."""
    reference = REFERENCE_DESIGNS[name]
    models = reference.models()
    design = reference.design(name, models)
    folder.mkdir(parents=True, exist_ok=True)
    for target in ("simulation", "synthesis"):
        made = generate(design, target=target, checked=False)
        (folder / f"{target}.v").write_text(made.text)
    (folder / "manifest.json").write_text(json.dumps(made.manifest, indent=1))
    manifest = Manifest.from_dict(made.manifest)
    for model in models:
        program = compile_model(model, manifest, reference.choices)
        program.save(folder / f"{model.network.name}.program.npz")


if __name__ == "__main__":
    for name in sys.argv[2:] or REFERENCE_DESIGNS:
        write(Path(sys.argv[1]) / name, name)
        print(name, flush=True)
