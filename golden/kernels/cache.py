"""Folders that are made once and found again by their key; several processes may ask for the same one.

A folder is built beside its place and renamed when it is complete (golden/atomic.py), so whatever carries its final
name is whole. What a killed process left unfinished goes with the next build.
A lock file per key makes the second process wait for the first instead of building too; lock files are empty and stay
(removing one that somebody waits for would let two in). The cache is bounded: when it
is over ``LIMIT_BYTES``, the folders used longest ago go, but none that was used in the last hour.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bitloom.golden import atomic

LIMIT_BYTES = 2 << 30
KEEP_SECONDS = 3600


def cache_root() -> Path:
    """``$BITLOOM_CACHE``, else ``$XDG_CACHE_HOME/bitloom``, else ``~/.cache/bitloom``."""
    chosen = os.environ.get("BITLOOM_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bitloom"


def cached_folder(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """Find the folder of a key, or make it.

    Parameters
    ----------
    kind : str
        What the folder holds, as the name of a folder in `cache_root`; users of the cache choose their own.
    key : str
        A name that covers all that the content depends on.
    build : callable
        Where there is no such folder, ``build(empty folder)`` fills it. If it raises an exception, nothing is left
        behind and the exception is passed on.

    Returns
    -------
    Path
        The folder, whole.
    """
    parent = cache_root() / kind
    folder = parent / key
    while not _used(folder):
        parent.mkdir(parents=True, exist_ok=True)
        with atomic.locked_file(parent / f"{key}.lock"):
            if not folder.is_dir():
                prune(LIMIT_BYTES)
                with atomic.new_folder(folder) as work:
                    build(work)
    return folder


def _used(folder: Path) -> bool:
    """Whether the folder exists; if so, its time of use is now."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def _kinds() -> set[Path]:
    """Folders of the cache that hold folders beside lock files; whatever else lies in it is not the cache's."""
    return {lock.parent for lock in cache_root().glob("*/*.lock")}


def _folders() -> Iterator[Path]:
    """What the cache holds: folders beside a lock file of theirs."""
    for path in (path for kind in _kinds() for path in kind.iterdir() if path.is_dir()):
        if path.with_name(f"{path.name}.lock").exists():
            yield path


def prune(limit_bytes: int, keep_seconds: float = KEEP_SECONDS) -> list[Path]:
    """Remove the folders used longest ago until the cache is within its limit.

    What an unfinished build left (its process died) goes in any case.

    Parameters
    ----------
    limit_bytes : int
        The most bytes that all folders together may have.
    keep_seconds : float
        Folders that were used in so many seconds stay, beyond the limit too.

    Returns
    -------
    list of Path
        The folders that went.
    """
    for kind in _kinds():
        atomic.remove_all_left(kind)
    aged = []
    for path in _folders():
        try:
            size = sum(item.stat().st_size for item in path.iterdir())
            aged.append((path.stat().st_mtime, size, path))
        except OSError:  # another process prunes too
            continue
    total = sum(size for _, size, _ in aged)
    gone = []
    for used, size, path in sorted(aged):
        if total <= limit_bytes or used > time.time() - keep_seconds:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= size
        gone.append(path)
    return gone
