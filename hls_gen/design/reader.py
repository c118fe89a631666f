"""Typed values out of parsed JSON, with a message that says where one is wrong."""

from typing import Any


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
            shown = repr(value)
            raise ValueError(f"{self.where}: {rule}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")

    def _get(self, key: str, kind: type, what: str) -> Any:
        value = self.data.get(key)
        self.require(isinstance(value, kind) and not isinstance(value, bool), f"{key} must be {what}", value)
        return value

    def text(self, key: str) -> str:
        """The non-empty string at ``key``."""
        value = str(self._get(key, str, "a non-empty string"))
        self.require(value != "", f"{key} must be a non-empty string", value)
        return value

    def number(self, key: str, low: int = 0, high: int | None = None) -> int:
        """The integer at ``key``, ``low`` <= it <= ``high``."""
        what = f"an integer >= {low}" if high is None else f"an integer {low}..{high}"
        value = int(self._get(key, int, what))
        self.require(value >= low and (high is None or value <= high), f"{key} must be {what}", value)
        return value

    def entries(self, key: str, least: int = 0) -> list[Any]:
        """The list at ``key``, of ``least`` entries at least."""
        value: list[Any] = self._get(key, list, "a list")
        self.require(len(value) >= least, f"{key} must have at least {least} entries", value)
        return value

    def table(self, key: str) -> dict[str, Any]:
        """The object at ``key``."""
        value: dict[str, Any] = self._get(key, dict, "a JSON object")
        return value

    def unique(self, what: str, values: list[Any]) -> None:
        """Require that no value occurs twice."""
        for value in values:
            self.require(values.count(value) == 1, f"{what} must be unique", value)
