#!/usr/bin/env python3
"""Run the networks of this folder on the board: classes of images, or a check of every bit against golden.

python3 driver.py --check
python3 driver.py images.npy --out classes.npy
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from bitloom import BitloomOverlay
from bitloom.driver.errors import DeviceError
from bitloom.golden.atomic import write_bytes
from bitloom.hls_gen.design.array_file import npy_bytes
from bitloom.overlay.evaluation.host_transform import transform_of

HERE = Path(__file__).resolve().parent
CONTENT = json.loads((HERE / "deploy.json").read_text())
NETWORKS = CONTENT["networks"]


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", nargs="?", type=Path, help=".npy file of images: (N, height, width, channels)")
    parser.add_argument("--network", choices=list(NETWORKS), default=next(iter(NETWORKS)), help="which network runs")
    parser.add_argument("--transform", help="how pixels become the input, as `bitloom evaluate` takes it")
    parser.add_argument("--outputs", action="store_true", help="give the network's outputs instead of classes")
    parser.add_argument("--out", type=Path, help=".npy file for the results; without, classes are printed")
    parser.add_argument("--check", action="store_true", help="compare each network with golden, bit for bit")
    parser.add_argument("--virtual", action="store_true", help="run on the virtual board, not on a real one")
    given = parser.parse_args()
    if (given.images is None) != given.check:
        parser.error("give a file of images, or --check")
    if CONTENT["simulation"] and not given.virtual:
        parser.error(
            f"{CONTENT['bit']} is for the virtual board alone: make the bitstream and deploy again, or --virtual"
        )
    return given


def load(overlay: BitloomOverlay, network: str) -> None:
    """Send a network's program to the accelerator."""
    overlay.load(HERE / NETWORKS[network]["program"])


def check(overlay: BitloomOverlay) -> bool:
    """Run the images that golden has computed; say for each network how many are right and how fast they are."""
    right = True
    for network, files in NETWORKS.items():
        load(overlay, network)
        with np.load(HERE / files["check"], allow_pickle=False) as known:
            images, outputs = known["images"], known["outputs"]
        same = int((overlay.predict(images) == outputs).all(axis=(1, 2, 3)).sum())
        overlay.clear_counters()
        begin = time.perf_counter()
        overlay.predict(np.concatenate([images] * 16))
        seconds = time.perf_counter() - begin
        counters = overlay.counters()
        print(
            f"{network}: {same} of {len(images)} images are golden's in every bit; "
            f"{counters['cycles'] / counters['frames']:,.0f} cycles a frame, "
            f"{16 * len(images) / seconds:,.0f} frames a second with the driver"
        )
        right &= same == len(images)
    return right


def run(overlay: BitloomOverlay, given: argparse.Namespace) -> np.ndarray:
    """Results of the images of the command line: classes, or outputs."""
    load(overlay, given.network)
    program = overlay.accelerator.program
    images = np.load(given.images, allow_pickle=False)
    text = given.transform or NETWORKS[given.network]["transform"]
    if program.host is None or text != "none":  # pixels
        outputs = overlay.predict(transform_of(text, program.host)(images))  # (N, height, width, channels)
        return outputs if given.outputs else program.classify(outputs)
    return (
        overlay.scores(images) if given.outputs else overlay.classify(images)
    )  # numbers as the network's file takes them


def main() -> None:
    """Load the bitstream, and do what the command line says."""
    given = arguments()
    if given.virtual:
        from bitloom.overlay.virtual.board import activate

        activate()
    with BitloomOverlay(str(HERE / CONTENT["bit"])) as overlay:
        if given.check:
            sys.exit(0 if check(overlay) else 1)
        results = run(overlay, given)
    if given.out:
        write_bytes(given.out, npy_bytes(results))
    else:
        print(results.tolist())


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, DeviceError) as e:
        sys.exit(f"driver.py: {e}")
