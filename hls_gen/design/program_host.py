"""The host's part of a program: images of an imported network become its input, and layers at a network's end."""

import numpy as np
from numpy.typing import NDArray

from bitloom.golden import file as model_file
from bitloom.golden.encoding import Array, signed
from bitloom.golden.host import file as host_file
from bitloom.golden.host.host import Host
from bitloom.golden.layer import Map
from bitloom.golden.network import Model
from bitloom.golden.reading.file import naming

HOST_VALUES = 1 << 20
"""Values that the host makes of images, in floating point of 64 bits, at a time: 8 MB of scratch for each."""


def input_of(host: Host, images: Array, source: Map) -> NDArray[np.int32]:
    """Make values of a network's input of images as the file has them that it was imported from.

    Parameters
    ----------
    host
        The host's part.
    images
        (n, *host.shape) numbers.
    source
        The input.

    Returns
    -------
    ndarray
        (n, H, W, C), checked values of the input.

    Raises
    ------
    ValueError
        Images have another shape, or give values that aren't the input's.
    """
    host.check_images(images)
    integers = np.empty((len(images), *source.shape), np.int32)
    size = max(1, HOST_VALUES // source.size)
    for begin in range(0, len(images), size):
        values = host.to_input(images[begin : begin + size], source.shape)
        source.encoding.check("images", values)
        integers[begin : begin + size] = values
    return integers


def read_host(text: Array, digest: str, source: Map, shape: tuple[int, int, int]) -> Host:
    """The part of the host in a program's file.

    Parameters
    ----------
    text
        (n,) uint8, the bytes of its JSON.
    digest
        Of the network and its arrays.
    source
        The network's input.
    shape
        Of the network's output.

    Raises
    ------
    ValueError
        If it is damaged, or belongs to another network.
    """
    height, width, channels = shape
    output = Map(height=height, width=width, channels=channels, encoding=signed(32))
    with naming("host"):
        return host_file.from_bytes(text.tobytes(), digest, source, output)


def read_tail(data: Array) -> Model:
    """The layers that the host computes, in a program's file: (n,) uint8, the bytes of a model file.

    ValueError if it is damaged, or is none.
    """
    with naming("tail"):
        return model_file.from_bytes(data.tobytes())
