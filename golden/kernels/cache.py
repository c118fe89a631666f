"""Folders that are made once and found again by their key; several processes may ask for the same one.

A folder is built beside its place and renamed when it is complete (golden/atomic.py), so whatever carries its final
name was whole once. What a killed process left unfinished goes with the next build.
What is found is loaded and run, so nobody else may be able to change it (golden/kernels/private.py), and each folder
has its own name and the digests of its files in SUMS: one that was damaged or renamed since is made again.
A lock file per key makes the second process wait for the first instead of building too; lock files are empty and stay
(removing one that somebody waits for would let two in). The cache is bounded: when it
is over ``LIMIT_BYTES``, the folders used longest ago go, but none that was used in the last hour.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bitloom.golden import atomic

from .private import check_owned, make_private

LIMIT_BYTES = 2 << 30
KEEP_SECONDS = 3600
LAYOUT = "3"
"""Folder in `cache_root` that holds everything; folders beside it are of earlier versions, and not used."""
SUMS = ".sha256"
"""File in each folder with the folder's kind and key in a comment, and the digests of the others as sha256sum writes
them."""


def cache_root() -> Path:
    """``$BITLOOM_CACHE``, else ``$XDG_CACHE_HOME/bitloom``, else ``~/.cache/bitloom``.

    A relative XDG_CACHE_HOME counts for nothing, as the XDG Base Directory Specification has it.

    Raises
    ------
    OSError
        If a home folder is needed, and there is none.
    """
    chosen = os.environ.get("BITLOOM_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        if chosen:
            return Path(chosen).expanduser().resolve()
        return (base if base.is_absolute() else Path.home() / ".cache") / "bitloom"
    except RuntimeError as e:  # neither HOME nor an entry among the system's users
        raise OSError(f"the cache must lie in a folder that can be found (set BITLOOM_CACHE), got: {e}") from None


def private_root() -> Path:
    """The folder in `cache_root` that holds everything, which nobody else can change; OSError if there can't be one."""
    return make_private(cache_root() / LAYOUT)


def cached_folder(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """Find the folder of a key, or make it.

    Parameters
    ----------
    kind : str
        Contents of the folder, as the name of a folder in `private_root`; users of the cache choose their own.
    key : str
        A name that covers all that the content depends on.
    build : callable
        Where there is no such folder, ``build(empty folder)`` fills it. If it raises an exception, nothing is left
        behind and the exception is passed on.

    Returns
    -------
    Path
        The folder, as ``build`` left it, and the file SUMS in it.

    Raises
    ------
    OSError
        If the cache can't be written, by ``build`` too, or somebody else could change it.
    """
    with _naming_the_cache(cache_root()):
        parent = private_root() / kind
        folder = parent / key
        while not (_used(folder) and _unchanged(folder, kind, key)):
            parent.mkdir(mode=0o700, exist_ok=True)
            with atomic.locked_file(parent / f"{key}.lock"):
                if not _unchanged(folder, kind, key):
                    _remove(folder)
                    prune(LIMIT_BYTES)
                    with atomic.new_folder(folder) as work:
                        build(work)
                        work.chmod(0o700)
                        atomic.write_scratch(work / SUMS, _sums(work, kind, key))
    return folder


@contextmanager
def _naming_the_cache(root: Path) -> Iterator[None]:
    """The system's errors about a file in the cache, or about a folder above it, become errors that name the cache."""
    try:
        yield
    except OSError as e:
        if e.errno is None or not isinstance(e.filename, (str, bytes)):  # ours, or of no file
            raise
        file = Path(os.path.realpath(os.fsdecode(e.filename)))
        real = Path(os.path.realpath(root))
        if not (file.is_relative_to(real) or real.is_relative_to(file)):
            raise
        said = os.strerror(e.errno)
        raise OSError(
            f"{root}: the cache must be writable (set BITLOOM_CACHE), got: {said[:1].lower()}{said[1:]}"
        ) from None


def _unchanged(folder: Path, kind: str, key: str) -> bool:
    """Whether the folder was made for this kind and key, and all files in it are as they were made."""
    try:
        if hasattr(os, "getuid"):
            check_owned(folder, last=True)
        return (folder / SUMS).read_text(encoding="utf-8") == _sums(folder, kind, key)
    except (OSError, ValueError):
        return False


def _remove(folder: Path) -> None:
    """Remove a damaged folder, or what lies in its place; of a link, the link."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _sums(folder: Path, kind: str, key: str) -> str:
    """Lines for SUMS; OSError if something in the folder is no file."""
    lines = [f"# {kind}/{key}\n"]
    for path in sorted(folder.iterdir()):
        if path.name != SUMS:
            if path.is_symlink() or not path.is_file():
                raise OSError(f"{path}: must be a file")
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return "".join(lines)


def _used(folder: Path) -> bool:
    """Whether the folder exists; if so, its time of use is now."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def _kinds() -> Iterator[tuple[Path, set[str]]]:
    """Folders of the cache that hold folders beside lock files, and the names in them; whatever else lies in it is not
    the cache's."""
    root = cache_root() / LAYOUT
    for kind in root.iterdir() if root.is_dir() else ():
        names = set(os.listdir(kind)) if kind.is_dir() else set()
        if any(name.endswith(".lock") for name in names):
            yield kind, names


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
    folders = []
    for kind, names in _kinds():
        atomic.remove_all_left(kind)
        folders += [kind / name for name in names if f"{name}.lock" in names]
    aged = []
    for path in folders:
        try:
            with os.scandir(path) as files:
                size = sum(file.stat(follow_symlinks=False).st_size for file in files)
            aged.append((path.stat().st_mtime, size, path))
        except OSError:  # a file that somebody put there, or another process prunes too
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
