"""The folder of a build: its files are replaced all at once, and what is not the build's own is never removed.

What `bitloom deploy` writes is kept in the same way, with a listing of another name.

    new files --> FOLDER/.bitloom-part/files --> moves.json --> each to its place --> .bitloom-part goes
                                                 ^ from here on the new build counts

A process that is killed before moves.json is there leaves the old build; from then on whoever opens the folder ends the
moves first (`settle`). build.json lists the digest of every file of a build. A file that is listed and unchanged is the
build's own: the next build replaces or removes it. Any other file is the user's. One that lies where a new file must be
is kept under another name, and nothing else happens to the others.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitloom.golden import atomic
from bitloom.golden.names import check_path
from bitloom.golden.reading.json_text import read_json

LISTING = "build.json"
"""File that describes the build and lists its files."""
DEPLOYED = "deploy.json"
"""The same of a folder for a board."""
PART = atomic.PART
"""Name of the folder with the files that aren't in their places yet."""
MOVES = "moves.json"
"""File in PART that says what remains to be done; it is written once all of that can be done."""


@dataclass(frozen=True)
class KeptFile:
    """A user's file that a build found in its folder."""

    path: str
    """Where the file was, in the folder: somebody had changed the file since a build wrote it, or no build had written
    it."""
    now: str
    """Where it is now: elsewhere if a new file needed its place."""


def replace_build(
    folder: Path, description: Mapping[str, Any], files: Mapping[str, bytes], listing: str = LISTING
) -> tuple[KeptFile, ...]:
    """Put a build into a folder in one step.

    Parameters
    ----------
    folder
        Made if it isn't there. It must be empty or hold a build.
    description
        Contents of build.json, without the list of files.
    files
        Content of each file by its path in the folder.
    listing
        Name of the file in the folder that describes the build and lists its files.

    Returns
    -------
    tuple of KeptFile
        Files of the user's that the old build listed, or that were in the way.

    Raises
    ------
    ValueError
        If the folder holds other files and no build.
    OSError
        If something can't be written; the old build is as it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with atomic.locked(folder):
        before = _finish(folder)
        if any(path.name != PART for path in folder.iterdir()) and not (folder / listing).exists():
            raise ValueError(f"{folder}: must be empty or hold the {listing} of before, got a folder with other files")
        digests = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
        text = json.dumps({**description, "files": digests}, indent=1) + "\n"
        part = folder / PART
        _remove_part(part)  # of a build that was killed
        try:
            for path, data in {**files, listing: text.encode()}.items():
                (part / "files" / path).parent.mkdir(parents=True, exist_ok=True)
                atomic.write_scratch(part / "files" / path, data)
            atomic.write_text(part / MOVES, json.dumps(_moves(folder, digests, listing)))
        except BaseException:
            _remove_part(part)
            raise
        return (*before, *_finish(folder))


def settle(folder: Path) -> tuple[KeptFile, ...]:
    """End what a killed build left undone, if it had come so far that its files count.

    Returns
    -------
    tuple of KeptFile
        As of `replace_build`.

    Raises
    ------
    ValueError
        If what it left is damaged.
    """
    if not (folder / PART / MOVES).exists():
        return ()
    with atomic.locked(folder):
        return _finish(folder)


def check_written(folder: Path, path: str) -> None:
    """Raise ValueError, which names the file, unless a file of the build in ``folder`` is as the build wrote it."""
    digest = _digest(folder / path)
    if digest is None or digest != _listed(folder, LISTING).get(path):
        got = "one that was changed" if digest else "no such file"
        raise ValueError(f"{folder / path}: must be as the build wrote it, got {got}: build again")


def listed_files(folder: Path) -> list[Path] | None:
    """The files that the listings in a folder name, and the listings themselves; None where there is no listing."""
    listings = [path for path in (folder / LISTING, folder / DEPLOYED) if path.is_file()]
    if not listings:
        return None
    return [*listings, *(folder / name for path in listings for name in sorted(_listed(folder, path.name)))]


def _moves(folder: Path, digests: Mapping[str, str], listing: str) -> dict[str, Any]:
    """The moves by which files with these digests replace the build in ``folder``.

    Returns
    -------
    dict
        ``kept``: (path, new name) of what the user changed or what is in the way. ``put``: files to put into their
        places, the listing last. ``drop``: digest of each file of the old build that goes.
    """
    old = _listed(folder, listing)
    kept: dict[str, str] = {}
    for path, new in digests.items():
        present = _present(folder, path)
        if present and (present != path or _digest(folder / path) not in (new, old.get(path, ""))):
            kept.setdefault(present, _free_name(folder, present))
    drop = {}
    for path, digest in old.items():
        if path in digests or _present(folder, path) != path:
            continue
        if _digest(folder / path) == digest:
            drop[path] = digest
        else:
            kept[path] = path
    return {"kept": list(kept.items()), "put": [*digests, listing], "drop": drop}


def _finish(folder: Path) -> tuple[KeptFile, ...]:
    """Do what moves.json says, if there is one. A second call goes on where the first one was killed."""
    part = folder / PART
    if part.is_symlink():  # nothing of ours: _remove_part takes it away
        return ()
    try:
        moves = read_json(part / MOVES, "what a build left undone")
    except FileNotFoundError:
        return ()
    try:
        kept = [KeptFile(path, now) for path, now in moves["kept"]]
        put = list(moves["put"])
        drop = dict(moves["drop"])
        for path in (*put, *drop, *(name for file in kept for name in (file.path, file.now))):
            check_path(MOVES, path)
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{part}: must hold what a build left undone, got: {e}; remove it") from None
    if all(_waits(part, path) for path in put):  # else these were all renamed before
        for file in kept:  # nothing is renamed through a link: it may be a stranger's, and lead anywhere
            if (
                file.now != file.path
                and _present(folder, file.path) == file.path
                and _present(folder, file.now) is None
            ):
                os.rename(folder / file.path, folder / file.now)
    for path in put:
        if _waits(part, path):
            _put(part / "files" / path, folder, path)
    for path, digest in drop.items():
        if _present(folder, path) == path and _digest(folder / path) == digest:
            (folder / path).unlink()
            _remove_empty(folder, path)
    (part / MOVES).unlink()
    _remove_part(part)
    return tuple(kept)


def _waits(part: Path, path: str) -> bool:
    """Whether a new file waits to be put into its place: a file of its own, to which no link leads."""
    new = f"files/{path}"
    return _present(part, new) == new and (part / new).is_file() and not (part / new).is_symlink()


def _remove_part(part: Path) -> None:
    """Remove the folder PART; if there is a link of that name, only the link is removed."""
    if part.is_symlink():
        part.unlink()
    shutil.rmtree(part, ignore_errors=True)


def _put(new: Path, folder: Path, path: str) -> None:
    """Move a new file to its place; ValueError if a link would lead elsewhere."""
    present = _present(folder, path)
    if present and present != path:
        raise ValueError(f"{folder / present}: must be a folder, and no link, to hold {path}")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    os.replace(new, folder / path)


def _listed(folder: Path, listing: str) -> dict[str, str]:
    """Digest of each file of the build in ``folder``, by path; none where the listing doesn't say."""
    try:
        files = read_json(folder / listing, listing)["files"]
        for path in files:
            check_path(listing, path)
        return dict(files)
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _present(folder: Path, path: str) -> str | None:
    """The path at which something already lies: ``path`` itself, its first part that is no folder, or None."""
    parts = path.split("/")
    for k in range(1, len(parts) + 1):
        here = folder.joinpath(*parts[:k])
        if not os.path.lexists(here):
            return None
        if here.is_symlink() or not here.is_dir():
            return "/".join(parts[:k])
    return path


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; None for a link, for what is no file, and for what can't be read."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _free_name(folder: Path, path: str) -> str:
    """A name beside ``path`` that nothing has."""
    name = f"{path}.kept"
    number = 1
    while os.path.lexists(folder / name):
        number += 1
        name = f"{path}.kept-{number}"
    return name


def _remove_empty(folder: Path, path: str) -> None:
    """Remove the folders above a file, up to ``folder``, that are empty now."""
    for parent in (folder / path).parents:
        if parent == folder or any(parent.iterdir()):
            return
        parent.rmdir()
