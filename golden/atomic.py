"""Files and folders that are whole or not there: all that bitloom writes goes through here.

    write beside the place, under a name of its own --> to the disk --> rename

A process that is killed, or a disk that is full, leaves the old file as it was. What a killed process leaves is a file
or folder whose name ends in ``PART``; the next one that writes to the same place removes it. A running process holds a
lock on its own, so nobody takes that away.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no locks, and what killed processes left stays
    fcntl = None  # type: ignore[assignment]

AnyPath = str | os.PathLike[str]

PART = ".bitloom-part"
"""Ending of the name of an unfinished file or folder."""
TRIES = 100
"""New names that are tried at most: another process may remove a new file before it is locked."""


def write_bytes(path: AnyPath, data: bytes) -> None:
    """Write a file in one step: whoever looks finds the old one or the new one, whole.

    A link is followed, as the user may have made it (else: `inside`), and a file that was there keeps its permissions.
    What is neither a file nor a folder, such as a pipe or /dev/stdout, is written directly.

    Parameters
    ----------
    path : path
        The file; its folder must be there.
    data : bytes
        All of its content.

    Raises
    ------
    OSError
        If the file can't be written; an old one is then as it was, and the message names the file.
    """
    place = Path(os.path.realpath(path))
    try:
        old = place.stat() if place.exists() else None
        if old and not stat.S_ISREG(old.st_mode):
            _write_directly(place, data)
            return
        if old and not os.access(place, os.W_OK):  # a rename would replace what is protected
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with suppress(OSError):  # what is left may stay; what must be written is told below
            remove_left(place)
        _write_beside(place, data, stat.S_IMODE(old.st_mode) if old else None)
    except OSError as e:
        raise OSError(e.errno, e.strerror, str(path)) from None


def write_text(path: AnyPath, text: str) -> None:
    """Write a text in UTF-8 in one step, as `write_bytes` does."""
    write_bytes(path, text.encode())


def inside(folder: AnyPath, path: str) -> Path:
    """Find the place of a file in a folder that may be somebody else's: no link in the folder may lead elsewhere.

    Where the user names a file, links to it are followed (`write_bytes`). Here only the folder was named, and bitloom
    chose the names in it.

    Parameters
    ----------
    folder : path
        The folder, which may be reached by links.
    path : str
        The file's path in it, with ``/`` between its parts. Folders on the way are made.

    Returns
    -------
    Path
        The place, where there is a file or nothing.

    Raises
    ------
    ValueError
        If a link or something else lies there, or on the way.
    OSError
        If a folder on the way can't be made.
    """
    place = Path(folder)
    parts = path.split("/")
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink():
            raise ValueError(f"{place}: must be a folder, got a link")
        place.mkdir(parents=True, exist_ok=True)
    place = place / parts[-1]
    if os.path.lexists(place) and not stat.S_ISREG(place.lstat().st_mode):
        kind = "a link" if place.is_symlink() else "a folder, a device or a pipe"
        raise ValueError(f"{place}: must be a file or not there, got {kind}")
    return place


def write_scratch(path: AnyPath, data: str | bytes) -> None:
    """Write a file of work in progress directly: in a temporary folder, or in one that `new_folder` gave."""
    try:
        _write_directly(Path(path), data.encode() if isinstance(data, str) else data)
    except OSError as e:
        raise OSError(e.errno, e.strerror, str(path)) from None


@contextmanager
def new_folder(place: AnyPath) -> Iterator[Path]:
    """Fill a new folder in one step.

    Parameters
    ----------
    place : path
        Where the folder shall be. There may be an empty one. Folders above it are made.

    Yields
    ------
    Path
        An empty folder beside it, to be filled. It gets its place when the block ends. If the block raises an
        exception, the folder goes.

    Raises
    ------
    OSError
        If a folder that isn't empty is there already.
    """
    place = Path(os.path.abspath(place))
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_left(place)
    with _new_part(place, folder=True) as part:
        yield part
        if fcntl is None:  # Windows renames a folder to no name that there is
            with suppress(OSError):
                place.rmdir()
        os.replace(part, place)


def remove_left(place: AnyPath) -> None:
    """Remove what killed processes left when they wrote to ``place``."""
    place = Path(place)
    remove_all_left(place.parent, _begin(place))


def remove_all_left(folder: Path, begin: str = ".") -> None:
    """Remove what killed processes left in ``folder`` under names that begin with ``begin``."""
    with os.scandir(folder) as entries:
        left = [Path(e.path) for e in entries if e.name.startswith(begin) and e.name.endswith(PART)]
    for part in left:
        _remove_if_left(part)


@contextmanager
def locked(path: AnyPath) -> Iterator[None]:
    """Hold an exclusive lock on a file or a folder, which must be there; wait for it if another process has it.

    It ends with the process at the latest. Where there are no locks (Windows, some disks in a network) it does nothing.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked_file(path: AnyPath) -> Iterator[None]:
    """Hold an exclusive lock on a file that serves as a lock alone, and is made if it is missing; see `locked`."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
    with locked(path):
        yield


def _write_directly(place: Path, data: bytes) -> None:
    with place.open("wb") as file:
        file.write(data)


def _write_beside(place: Path, data: bytes, mode: int | None) -> None:
    """Write a file under another name in the same folder, and rename it."""
    with _new_part(place, folder=False) as part:
        with part.open("wb") as file:  # closed before it is renamed: Windows renames no open file
            if mode is not None:
                os.chmod(part, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # some disks say only now that they are full
        os.replace(part, place)


@contextmanager
def _new_part(place: Path, folder: bool) -> Iterator[Path]:
    """A new file or folder beside ``place`` under a name that nobody has, locked while the block runs.

    It goes with the block, unless it was renamed.
    """
    with ExitStack() as lock:
        for tries_left in reversed(range(TRIES)):
            part = place.with_name(f"{_begin(place)}{secrets.token_hex(6)}{PART}")
            try:
                if folder:
                    part.mkdir()
                else:
                    part.touch(exist_ok=False)
                lock.enter_context(locked(part))
            except (FileNotFoundError, FileExistsError):
                if not (tries_left and place.parent.is_dir()):  # in some folders, as /proc, nothing can be made
                    raise
                continue
            if part.exists():
                break
            lock.close()  # somebody took it for left behind before it had its lock
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(part))
        try:
            yield part
        finally:
            if folder:
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink(missing_ok=True)


def _begin(place: Path) -> str:
    """Beginning of the names of unfinished files of ``place``, cut so that a whole name is no longer than 255 bytes."""
    return f".{place.name[:40]}."


def _remove_if_left(part: Path) -> None:
    """Remove an unfinished file or folder unless a process holds a lock on it."""
    if fcntl is None:
        return
    try:
        handle = os.open(part, os.O_RDONLY)
    except OSError:  # gone, or another user's
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
    except OSError:  # a running process has it
        pass
    finally:
        os.close(handle)
