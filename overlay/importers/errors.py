"""Errors of an import: one line for each node that can't be imported, all lines at once."""

from collections.abc import Sequence

from bitloom.golden import names

LONGEST = 120
"""Characters of a file's text that a message shows at most."""
RECURRENT = "recurrent layers have no hardware: use convolutions"


class Unsupported(ValueError):
    """One thing in a file that can't be imported.

    Parameters
    ----------
    why : str
        The rule and the value: ``strides must be positive, got (0, 1)``.
    instead : str
        Advice for the user, or nothing.
    """

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(f"{why}; {instead}" if instead else why)


class ImportRefused(ValueError):
    """A file that can't be imported: every reason, one a line.

    Parameters
    ----------
    lines : sequence of str
        The reasons, each with the name of its node in front.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


def node_line(name: str, op: str, reason: object, more: int = 0) -> str:
    """The line of a node: its name, its operator, how many ``more`` nodes there are like it, and the reason."""
    others = f" and {more} more like it" if more else ""
    return f"{printable(name)} ({printable(op)}){others}: {reason}"


def merged_lines(refusals: Sequence[tuple[str, str, object]]) -> list[str]:
    """The lines of nodes; those with the same operator and reason become one.

    Parameters
    ----------
    refusals : sequence of (str, str, object)
        Name of the node, its operator, and the reason.
    """
    names: dict[tuple[str, str], list[str]] = {}
    for name, op, reason in refusals:
        names.setdefault((op, str(reason)), []).append(name)
    return [node_line(alike[0], op, reason, more=len(alike) - 1) for (op, reason), alike in names.items()]


def printable(text: str) -> str:
    """Text of a file as a message shows it: printable, and not too long."""
    return names.printable(text, LONGEST)
