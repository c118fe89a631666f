"""The design's registers by name, and its counters, which wrap at 2^32, as totals that don't."""

from dataclasses import asdict
from typing import Any

from bitloom.hls_gen.design.manifest_parts import CoreManifest
from bitloom.hls_gen.design.registers import DIGEST_REGISTERS, shows_progress

from .state import npu_state


class Registers:
    """Registers of one core. ``core`` has ``read(offset)`` and ``write(offset, value)``, as pynq's DefaultIP."""

    def __init__(self, core: Any, manifest: CoreManifest) -> None:
        self._core = core
        self.manifest = manifest

    def read(self, name: str) -> int:
        """The register's 32 bits. KeyError if the manifest has no such register."""
        return int(self._core.read(self.manifest.register(name).offset))

    def field(self, name: str, field: str) -> int:
        """One field of a register."""
        return self.manifest.register(name).field(field).of(self.read(name))

    def write(self, name: str, value: int) -> None:
        """Write 32 bits. ValueError if the register is read-only."""
        register = self.manifest.register(name)
        if register.access == "RO":
            raise ValueError(f"register {name}: access must be RW or RW1C to write it, got RO")
        self._core.write(register.offset, int(value) & 0xFFFFFFFF)

    def set(self, name: str, **fields: int) -> None:
        """Write the register with these fields changed and the others as they are read."""
        register = self.manifest.register(name)
        value = self.read(name)
        for key, content in fields.items():
            target = register.field(key)
            value = value & ~target.at(-1) | target.at(content)
        self.write(name, value)

    def digest(self) -> str:
        """The first 32 hex digits of the digest of the design that answers."""
        return "".join(f"{self.read(f'DIGEST_{i}'):08x}" for i in range(DIGEST_REGISTERS))

    def dump(self) -> dict[str, int]:
        """Every register by name."""
        return {register.name: self.read(register.name) for register in self.manifest.registers}

    def state(self, dump: dict[str, int]) -> dict[str, int]:
        """Fields of the STATE registers of a dump, with the names that ``npu_state`` gives them."""
        return npu_state([asdict(register) for register in self.manifest.registers], dump)


class Counters:
    """Totals of the counters while transfers run. ``rebase`` as one begins, ``update`` at least every 2^32 cycles."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers
        self._names = registers.manifest.counters
        self.totals: dict[str, int] = {}
        """Register name in lower case -> total since ``clear``."""
        self._seen: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Set the totals to 0 and start from the counters as they stand."""
        self.totals = {name.lower(): 0 for name in self._names}
        self.rebase()

    def rebase(self) -> None:
        """Take the counters as they stand as the new beginning; the totals stay."""
        self._seen = self._read()

    def update(self, count: bool = True) -> bool:
        """Look at what was counted since the last look, and add it if ``count``.

        True if something moved: a word, a frame or a beat.
        """
        now = self._read()
        moved = False
        for name, value in now.items():
            difference = (value - self._seen[name]) & 0xFFFFFFFF
            self.totals[name.lower()] += difference if count else 0
            moved |= difference > 0 and shows_progress(name)
        self._seen = now
        return moved

    def _read(self) -> dict[str, int]:
        return {name: self._registers.read(name) for name in self._names}
