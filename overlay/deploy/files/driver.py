#!/usr/bin/env python3
"""Run the networks of this folder on the board: classes of images, or a check of every bit against golden.

python3 driver.py --check
python3 driver.py images.npy --out classes.npy
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bitloom import BitloomOverlay
from bitloom.driver.errors import DeviceError
from bitloom.golden.atomic import write_bytes
from bitloom.golden.reading.file import naming, read_file, system_words
from bitloom.golden.reading.json_text import read_json
from bitloom.golden.reading.npy import parse_npy
from bitloom.hls_gen.design.array_file import array_bytes, npy_bytes, read_arrays
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.evaluation.host_transform import transform_of

HERE = Path(__file__).resolve().parent
TIMED = 16
"""How often the images of a check run to see how fast they are."""


def arguments(content: dict[str, Any]) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description="Run the networks of this folder on the board.")
    parser.add_argument("images", nargs="?", type=Path, help=".npy file of images, of the shape in README.md")
    parser.add_argument("--network", choices=list(content["networks"]), help="which network runs, by default the first")
    parser.add_argument("--transform", help="how pixels become the input, as `bitloom evaluate` takes it")
    parser.add_argument("--outputs", action="store_true", help="give what the network gives instead of classes")
    where = ".npy file for the results, .npz where a file with several outputs was imported; without, they are printed"
    parser.add_argument("--out", type=Path, help=where)
    parser.add_argument("--check", action="store_true", help="compare all networks, or one, with golden, bit for bit")
    parser.add_argument("--virtual", action="store_true", help="run on the virtual board, not on a real one")
    given = parser.parse_args()
    if (given.images is None) != given.check:
        parser.error("give a file of images, or --check")
    if given.check and (given.transform or given.outputs or given.out):
        parser.error("--transform, --outputs and --out are for a file of images, got --check")
    if given.out and not given.out.parent.is_dir():
        parser.error(f"--out: must lie in a folder that is there, got {given.out}")
    if content["simulation"] and not given.virtual:
        advice = "make the bitstream and deploy again, or --virtual"
        parser.error(f"{content['bit']} is for the virtual board alone: {advice}")
    return given


def check(overlay: BitloomOverlay, networks: dict[str, Any]) -> bool:
    """Run images whose outputs golden has computed; say for each network how many are right and how fast they are."""
    right = True
    for network, files in networks.items():
        overlay.load(HERE / files["program"])
        known = read_arrays(HERE / files["check"], ("images", "outputs"))
        images, outputs = known["images"], known["outputs"]
        same = int((overlay.predict(images) == outputs).all(axis=(1, 2, 3)).sum())
        timed = np.concatenate([images] * TIMED)
        overlay.clear_counters()
        begin = time.perf_counter()
        overlay.predict(timed)
        seconds = time.perf_counter() - begin
        cycles = overlay.counters()["cycles"]  # of all partitions; the counter of frames counts those of each
        print(
            f"{network}: {same} of {len(images)} images are golden's in every bit; "
            f"{cycles / len(timed):,.0f} cycles a frame, {len(timed) / seconds:,.0f} frames a second with the driver"
        )
        right &= same == len(images)
    return right


def results(
    overlay: BitloomOverlay, images: np.ndarray, transform: str, outputs: bool
) -> np.ndarray | dict[str, np.ndarray]:
    """Classes of images, or with ``outputs`` what the network gives: of an imported one what its file gives, by name if
    the file has several outputs."""
    program = overlay.accelerator.program
    if program.host is not None and transform == "none":  # numbers as the network's own file takes them
        values = overlay.predict(program.to_input(images))
    else:
        values = overlay.predict(transform_of(transform, program.host)(images))
    if not outputs:
        return program.classify(values)
    return values if program.host is None else program.host.closed(values)


def check_results(program: Program, outputs: bool, out: Path | None) -> None:
    """Refuse classes of a network that has none, and a file whose name says another format than it gets."""
    if not program.has_classes and not outputs:
        raise ValueError(f"{program.name}: --outputs must be given, as the network has no classes")
    by_name = outputs and program.host is not None and len(program.host.outputs) > 1
    ending = ".npz" if by_name else ".npy"
    if out is not None and out.suffix != ending:
        raise ValueError(f"--out: the file for these results of {program.name} must end in {ending}, got {out.name}")


def main() -> int:
    """Load the bitstream, and do what the command line says; the exit status."""
    content = read_json(HERE / "networks.json", "networks.json")
    given = arguments(content)
    networks = content["networks"]
    if given.images:
        data = read_file(given.images)
        with naming(given.images):
            images = parse_npy(data, "biuf")
    if given.virtual:
        from bitloom.overlay.virtual.board import activate

        activate()
    with BitloomOverlay(str(HERE / content["bit"])) as overlay:
        if given.check:
            chosen = {given.network: networks[given.network]} if given.network else networks
            return 0 if check(overlay, chosen) else 1
        files = networks[given.network or next(iter(networks))]
        overlay.load(HERE / files["program"])
        check_results(overlay.accelerator.program, given.outputs, given.out)
        with naming(given.images):
            outputs = results(overlay, images, given.transform or files["transform"], given.outputs)
    if given.out:
        write_bytes(given.out, array_bytes(outputs) if isinstance(outputs, dict) else npy_bytes(outputs))
    elif isinstance(outputs, dict):
        print({name: values.tolist() for name, values in outputs.items()})
    else:
        print(outputs.tolist())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as e:
        sys.exit(f"driver.py: {system_words(e)}")
    except (ValueError, DeviceError) as e:
        sys.exit(f"driver.py: {e}")
