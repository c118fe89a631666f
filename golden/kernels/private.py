"""Folders that nobody but their owner can change, so that what lies in them may be loaded and run.

The rule, for the real path, links followed: each folder from the root on belongs to root or to this user, and nobody
else can write to it, unless its sticky bit keeps others from renaming what isn't theirs (/tmp). The last folder belongs
to this user, and is for this user alone (mode 0700).
"""

import os
import stat
from pathlib import Path


def make_private(path: Path) -> Path:
    """Make a folder that is private, or check one that is there.

    Parameters
    ----------
    path : Path
        The folder. It and those above it that are missing are made with mode 0700.

    Returns
    -------
    Path
        Its real path.

    Raises
    ------
    OSError
        If it can't be made, or another user could change what is in it. The message names the folder, the rule and what
        was found.
    """
    for part in (*reversed(path.parents), path):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    real = Path(os.path.realpath(path))
    if not hasattr(os, "getuid"):  # Windows: a user's folders are the user's by default
        return real
    for part in (*reversed(real.parents), real):
        check_owned(part, last=part == real)
    if stat.S_IMODE(real.stat().st_mode) & 0o077:
        real.chmod(0o700)
    return real


def check_owned(part: Path, last: bool) -> None:
    """Refuse a folder that somebody else could change.

    Parameters
    ----------
    part : Path
        The folder.
    last : bool
        Whether it must be this user's own; else it may be root's, or sticky.

    Raises
    ------
    PermissionError
        If it is another user's, or others can write to it.
    """
    status = os.lstat(part)
    owners = {os.getuid()} if last else {0, os.getuid()}
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{part}: must be a folder, to keep what is loaded and run")
    if status.st_uid not in owners:
        raise PermissionError(
            f"{part}: must belong to this user{'' if last else ' or root'}, to keep what is loaded "
            f"and run, got user {status.st_uid}"
        )
    mode = stat.S_IMODE(status.st_mode)
    others = mode & 0o002 or (mode & 0o020 and not _is_personal_group(status.st_gid))
    if others and (last or not mode & stat.S_ISVTX):
        raise PermissionError(
            f"{part}: must be writable by its owner alone, to keep what is loaded and run, got mode {mode:04o}"
        )


def _is_personal_group(group: int) -> bool:
    """Whether a group is root's, or has this user's name and no other member, as many systems give each user one."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.getuid()).pw_name
        entry = grp.getgrgid(group)
    except KeyError:
        return False
    return group == 0 or (entry.gr_name == user and set(entry.gr_mem) <= {user})
