"""Objects that somebody has: they are large, or know what took long to find, and are not made again meanwhile."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Value = TypeVar("Value")


class InUse(Generic[Value]):
    """Objects by what they are made of, as long as somebody has them."""

    def __init__(self) -> None:
        self._objects = WeakValueDictionary[Hashable, Value]()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The object of a key; if nobody has it, what ``make`` gives."""
        value = self._objects.get(key)
        if value is None:
            value = self._objects[key] = make()
        return value
