"""Labelled images by name or path: what ``bitloom evaluate`` takes for DATA."""

from pathlib import Path

from bitloom.golden import zoo
from bitloom.golden.names import shown
from bitloom.golden.network import Network
from bitloom.golden.zoo.digits import load_digits
from bitloom.golden.zoo.mnist import load_mnist

from .files import read_labelled
from .labelled import LabelledImages, of_arrays
from .pictures import pictures

NAMES = ("digits", "mnist")
"""Data that have a name: the 360 test images of scikit-learn's digits, and MNIST's test images where they are."""
DEFAULTS = {
    "digits-cnn": "digits",
    "digits-or": "digits",
    "digits-residual": "digits",
    "digits-words": "digits",
    "lfc-w1a1": "mnist",
}
"""Network -> the test images that it was trained for."""


def labelled_images(
    data: str | None, network: Network, *, labels: Path | None = None, resize: bool = False, real: bool = False
) -> LabelledImages:
    """Labelled images.

    Parameters
    ----------
    data
        One of NAMES, or the path of a file (`read_labelled`) or of a folder (`pictures`); None for those of DEFAULTS.
    network
        Whose input the images are for.
    labels
        File of the labels, for a file of images.
    resize
        Whether pictures of a folder are scaled to the input's size.
    real
        Whether images in a file may be real numbers, too.

    Raises
    ------
    ImportError
        If scikit-learn or Pillow is needed and missing.
    OSError
        If there is no such file or folder.
    ValueError
        If the data are damaged, or not for this network; or if labels are given where they aren't needed, or resize
        where nothing can be resized.
    """
    source = data or DEFAULTS.get(network.name)
    if source is None:
        raise ValueError(f"{network.name}: DATA must be given, a file, a folder or one of {', '.join(NAMES)}, got none")
    named = source in NAMES
    path = Path(source)
    folder = not named and path.is_dir()
    if labels is not None and (named or folder):
        raise ValueError(f"{source}: has its own labels, so --labels must be left out, got {shown(str(labels))}")
    if resize and not folder:
        raise ValueError(f"{source}: --resize is for a folder of pictures, got {'a name' if named else 'a file'}")
    if source == "digits":
        images = load_digits()
        return of_arrays(source, images.test_images, images.test_labels, network)
    if source == "mnist":
        return of_arrays(source, *load_mnist(zoo.data_folder()), network)
    return pictures(path, network, resize) if folder else read_labelled(path, network, labels, real)
