"""Typed values out of parsed JSON, with a message that says where one is wrong."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from bitloom.golden.names import check_path, shown

MOST_ENTRIES = 100_000
"""Entries of a list at most, unless a reader says otherwise."""


class Reader:
    """Reads typed values out of a JSON object and names the place when one is wrong.

    Every method raises ValueError ``where: rule, got value`` where its rule is broken.

    Attributes
    ----------
    where
        The object's place, as messages begin with it.
    data
        The object.
    """

    def __init__(self, data: Any, where: str) -> None:
        self.where = where
        self.require(isinstance(data, dict), "must be a JSON object", data)
        self.data: dict[str, Any] = data

    def require(self, ok: bool, rule: str, value: Any) -> None:
        """ValueError unless ``ok``; a long value is cut."""
        if not ok:
            raise ValueError(f"{self.where}: {rule}, got {shown(value)}")

    def format(self, name: str, version: int) -> None:
        """Require that the object says that it is of this format and version."""
        self.require(self.data.get("format") == name, f"format must be {name}", self.data.get("format"))
        given = self.data.get("version")
        self.require(given == version and type(given) is int, f"version must be {version}", given)

    def only(self, keys: Iterable[str]) -> None:
        """Require that the object has no keys but these, so that nothing in it goes without effect."""
        known = tuple(keys)
        for key in self.data:
            self.require(key in known, f"keys must be {', '.join(known)}", key)

    def _get(self, key: str, kind: type, what: str) -> Any:
        value = self.data.get(key)
        self.require(isinstance(value, kind) and not isinstance(value, bool), f"{key} must be {what}", value)
        return value

    def text(self, key: str) -> str:
        """The non-empty string at ``key``."""
        value = str(self._get(key, str, "a non-empty string"))
        self.require(value != "", f"{key} must be a non-empty string", value)
        return value

    def one_of(self, key: str, values: Sequence[str]) -> str:
        """The string at ``key``, which is one of ``values``."""
        value = self.data.get(key)
        self.require(value in values, f"{key} must be {' or '.join(values)}", value)
        return str(value)

    def file_name(self, key: str) -> str:
        """The name of a file at ``key``, which is no path."""
        value = self.text(key)
        check_path(f"{self.where}: {key}", value)
        self.require("/" not in value, f"{key} must be the name of a file", value)
        return value

    def vlnv(self) -> str:
        """The name of an interface at ``vlnv``: vendor:library:name:version."""
        value = self.text("vlnv")
        ok = len(value.split(":")) == 4 and value.isprintable()
        self.require(ok, "vlnv must be vendor:library:name:version", value)
        return value

    def digest(self, key: str) -> str:
        """The SHA-256 at ``key``, in hexadecimal."""
        value = self.text(key)
        hexadecimal = len(value) == 64 and set(value) <= set("0123456789abcdef")
        self.require(hexadecimal, f"{key} must be 64 lower-case hex digits", value)
        return value

    def number(self, key: str, low: int = 0, high: int | None = None) -> int:
        """The integer at ``key``, ``low`` <= it <= ``high``."""
        what = f"an integer >= {low}" if high is None else f"an integer {low}..{high}"
        value = int(self._get(key, int, what))
        self.require(value >= low and (high is None or value <= high), f"{key} must be {what}", value)
        return value

    def real(self, key: str, low: float = 0) -> float:
        """The finite number at ``key``, which is >= ``low``."""
        given = self.data.get(key)
        value = float(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else inf
        self.require(low <= value < inf, f"{key} must be a finite number >= {low:g}", given)
        return value

    def entries(self, key: str, least: int = 0) -> list[Any]:
        """The list at ``key``, of ``least`` entries at least."""
        value: list[Any] = self._get(key, list, "a list")
        self.require(len(value) >= least, f"{key} must have at least {least} entries", value)
        self.require(len(value) <= MOST_ENTRIES, f"{key} must have at most {MOST_ENTRIES:,} entries", len(value))
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of strings at ``key``."""
        values = self.entries(key)
        for value in values:
            self.require(isinstance(value, str), f"{key} must be strings", value)
        return tuple(values)

    def numbers(self, key: str, low: int = 0, high: int | None = None) -> tuple[int, ...]:
        """The list of integers at ``key``, each as of `number`."""
        return tuple(Reader({key: value}, self.where).number(key, low, high) for value in self.entries(key))

    def table(self, key: str) -> dict[str, Any]:
        """The object at ``key``."""
        value: dict[str, Any] = self._get(key, dict, "a JSON object")
        return value

    def inner(self, key: str) -> "Reader":
        """A reader of the object at ``key``."""
        return Reader(self.table(key), f"{self.where}: {key}")

    def unique(self, what: str, values: list[Any]) -> None:
        """Require that no value occurs twice."""
        seen: set[Any] = set()
        for value in values:
            self.require(value not in seen, f"{what} must be unique", value)
            seen.add(value)
