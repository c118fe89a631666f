"""Images for a run: from a file, or random ones."""

import os

import numpy as np

from bitloom.golden.host.host import Host
from bitloom.golden.limits import MB, RUN_MB
from bitloom.golden.network import Network
from bitloom.golden.reading.file import naming, read_file
from bitloom.golden.reading.npy import parse_npy
from bitloom.hls_gen.design.program_host import input_of


def read_images(
    path: str | os.PathLike[str], network: Network, most: int | None = None, host: Host | None = None
) -> np.ndarray:
    """Images in a file.

    Parameters
    ----------
    path
        A .npy file of integers, (N, H, W, C) of the network's input, N >= 1. With ``host``: of real numbers, as the
        imported file takes them.
    network
        Whose input the images are for.
    most
        How many to take, the first ones; None: all.
    host
        The host's part of an imported network; None for others.

    Returns
    -------
    numpy.ndarray
        (N, H, W, C) integers, each a value of the input.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If the file is another one. One line that begins with the path.
    """
    data = read_file(path)
    with naming(os.fspath(path)):
        images = parse_npy(data, "biuf" if host is not None else "biu")
        if host is not None and images.dtype.kind == "f":
            images = input_of(host, images, network.input)
        height, width, channels = network.input.shape
        if images.ndim != 4 or images.shape[1:] != network.input.shape or len(images) < 1:
            raise ValueError(f"images must have shape (N, {height}, {width}, {channels}), N >= 1, got {images.shape}")
        network.input.encoding.check("images", images)
    return images[:most]


def check_frames(network: Network, count: int) -> None:
    """Refuse more frames than fit in memory.

    Parameters
    ----------
    network
        Network that is run.
    count
        Frames, all of whose images and results are held: those of golden and those of hardware.

    Raises
    ------
    ValueError
        If there is none, or they need more than `bitloom.golden.limits.RUN_MB`.
    """
    if count < 1:
        raise ValueError(f"{network.name}: frames must be >= 1, got {count}")
    values = 2 * network.input.size + 2 * network.output.size  # twice: drawn and scaled; golden and hardware
    RUN_MB.check(f"{network.name}: {count:,} frames", 8 * values * count / MB)


def random_images(network: Network, count: int, seed: int) -> np.ndarray:
    """Images whose values are drawn at random from all that the network's input may have.

    Parameters
    ----------
    network
        Whose input the images are for.
    count
        Number of images.
    seed
        The same seed gives the same images.

    Returns
    -------
    numpy.ndarray
        (count, H, W, C) int64.

    Raises
    ------
    ValueError
        As `check_frames`.
    """
    check_frames(network, count)
    source = network.input
    steps = (source.encoding.high - source.encoding.low) // source.encoding.step + 1
    drawn = np.random.default_rng(seed).integers(0, steps, (count, *source.shape))
    return source.encoding.low + source.encoding.step * drawn
