"""The way of a map from the NPU that makes it to whoever needs it (hls_gen/compiler/ways.py)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MapWay:
    """The way of a map.

    Attributes
    ----------
    target : str
        The outlet by which it leaves: "loop", "ring", "host", or "skip" where it is needed from the skip store alone.
    reader : str or None
        The layer that reads it behind that outlet.
    forks : bool
        Whether it goes to the skip store as well.
    skip_reader : str or None
        The layer that reads it from the skip store.
    adder : str or None
        The layer that adds it from the skip store.
    skip_npu : int or None
        NPU of that skip store, where it is not the one that makes the map.
    """

    target: str
    reader: str | None = None
    forks: bool = False
    skip_reader: str | None = None
    adder: str | None = None
    skip_npu: int | None = None

    @property
    def skips(self) -> bool:
        """Whether it goes to the skip store."""
        return self.forks or self.target == "skip"

    def store(self, maker: int) -> int:
        """NPU of the skip store, for a map that NPU ``maker`` makes."""
        return maker if self.skip_npu is None else self.skip_npu
