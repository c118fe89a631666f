"""Parts of an NPU: what each has in common.

An NPU (npu.py) is put together of eight parts: former, sequencer, array, results, pool unit, stores, ports and loader.
A part checks its own fields when it is made; the NPU checks what two parts must agree on. Some fields are chosen by a
person or by the search, others are sizes: as large as the networks need (hls_gen/compiler/sizing.py).
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from bitloom.golden.integers import make_fields_plain


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an NPU. Checked when it is made; ValueError ``npu: field, rule, value``."""

    def __post_init__(self) -> None:
        make_fields_plain(self)


def rare(default: Any) -> Any:
    """A field of a dataclass that is written to files only where it isn't at its default."""
    return field(default=default, metadata={"written_if_set": True})


P = TypeVar("P")


def present(part: P | None) -> P:
    """The part, for callers that are only asked where it is there.

    Raises
    ------
    AssertionError
        It isn't.
    """
    assert part is not None, "a part that this NPU lacks"
    return part
