"""Rules for names: of a network, a design, a board, a layer, a class.

Names become names of files, and words of Verilog, Tcl, make, XML and HTML. So what carries a name checks it when it is
made, wherever the name came from. Names of classes are for people only: they may hold blanks and any letters, and
are quoted where they are written into another language.

=============================  ========================================  =======
what                           characters                                length
=============================  ========================================  =======
network, design, board         A-Z, a-z, 0-9, _, -, . (no - or . first)  1..64
layer                          a-z, 0-9, _ (a letter first)              1..64
module of Verilog              A-Z, a-z, 0-9, _ between them (a letter   1..64
                               first)
class                          whatever is printable, blanks too         1..100
=============================  ========================================  =======
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

NAME_LENGTH = 64
"""Characters of a name at most: with its endings it is still the name of a file (255 bytes)."""
LABEL_LENGTH = 100
"""Characters of a class's name at most."""
SHOWN = 60
"""Characters of a refused value that a message shows."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", re.ASCII)
_LAYER = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def check_name(what: str, name: object) -> None:
    """Refuse what can't be the name of a network, a design or a board.

    Parameters
    ----------
    what : str
        Thing that has the name, for the message.
    name : object
        The name.

    Raises
    ------
    ValueError
        Unless it is a string of 1 to NAME_LENGTH letters, digits, ``_``, ``-`` and ``.`` that doesn't begin with ``-``
        or ``.``.
    """
    if not isinstance(name, str) or len(name) > NAME_LENGTH or not _NAME.fullmatch(name):
        raise ValueError(
            f"{what}: name must be 1..{NAME_LENGTH} of A-Z, a-z, 0-9, _, - and ., not beginning with - or ., "
            f"got {shown(name)}"
        )


def check_layer_names(*names: object) -> None:
    """Refuse what can't be the name of a layer: ValueError unless all are lower_snake_case, of NAME_LENGTH at most."""
    for name in names:
        if not isinstance(name, str) or not _LAYER.fullmatch(name):
            raise ValueError(f"layer: name must be lower_snake_case, got {shown(name)}")
        if len(name) > NAME_LENGTH:
            raise ValueError(f"layer: name must have at most {NAME_LENGTH} characters, got {len(name)}")


def check_classes(what: str, classes: object, channels: int) -> None:
    """Refuse what can't be the names of a network's outputs.

    Parameters
    ----------
    what : str
        Name of the network, for the message.
    classes : sequence
        The names of the classes.
    channels : int
        Channels of the network's output.

    Raises
    ------
    ValueError
        Unless they are a sequence, empty or with as many as channels, each a string of 1 to LABEL_LENGTH printable
        characters that aren't all blanks.
    """
    if isinstance(classes, (str, bytes)) or not isinstance(classes, (Sequence, np.ndarray)):
        raise ValueError(f"{what}: classes must be a sequence of names, got {shown(classes)}")
    if len(classes) not in (0, channels):
        raise ValueError(f"{what}: classes must be none or {channels}, got {len(classes)}")
    for label in classes:
        is_printable = isinstance(label, str) and label.isprintable() and bool(label.strip())
        if not is_printable or len(str(label)) > LABEL_LENGTH:
            raise ValueError(f"{what}: classes must be 1..{LABEL_LENGTH} printable characters, got {shown(label)}")


def check_identifier(what: str, name: object) -> None:
    """Refuse what can't be the name of a module of Verilog.

    Parameters
    ----------
    what : str
        Thing that has the name, for the message.
    name : object
        The name.

    Raises
    ------
    ValueError
        Unless it is a string of 1 to NAME_LENGTH letters, digits and single ``_`` between them, a letter first.
    """
    if not isinstance(name, str) or len(name) > NAME_LENGTH or not _IDENTIFIER.fullmatch(name):
        raise ValueError(
            f"{what} must be 1..{NAME_LENGTH} letters, digits and single _ between them, a letter first, "
            f"got {shown(name)}"
        )


def shown(value: object) -> str:
    """A value as a message shows it: on one line, printable, and not longer than SHOWN characters."""
    text = ascii(value) if not repr(value).isprintable() else repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def printable(text: str, most: int = SHOWN) -> str:
    """A text as a message has it: as it is, or as `shown` where it is longer or not printable."""
    return text if text.isprintable() and len(text) <= most else shown(text)


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name that it resembles, or nothing.

    Parameters
    ----------
    name : str
        Word that was given.
    known : iterable of str
        The names that there are.

    Returns
    -------
    str
        Such as ``; was digits-cnn meant?``, or empty.
    """
    from difflib import get_close_matches  # of errors alone

    by_key = {_key(known_name): known_name for known_name in known}
    nearest = get_close_matches(_key(name[:NAME_LENGTH]), by_key, n=1, cutoff=0.85)
    return f"; was {by_key[nearest[0]]} meant?" if nearest else ""


def _key(name: str) -> str:
    """A name as it is compared: most are misspelt by capital letters, or by other characters between words."""
    return re.sub(r"[-_. ]+", "-", name.lower())


def check_path(what: str, path: object) -> None:
    """Refuse what can't be the path of a file inside a folder of ours.

    Parameters
    ----------
    what : str
        Thing that has the path, for the message.
    path : object
        The path, with ``/`` between its parts.

    Raises
    ------
    ValueError
        Unless each part has the characters of a name, or ``+``, as wheels have it: nothing leads out of the folder.
    """
    if not isinstance(path, str) or not all(_FILE.fullmatch(part) for part in path.split("/")):
        raise ValueError(f"{what}: must be a path inside the folder, got {shown(path)}")
