"""Rules of Windows, for a Python process on Linux: ``python -m tests.windows bitloom WORDS`` is the command under them.

What Python has on POSIX alone is missing, pynq too; no folder can be opened as a file, and neither a file that is open
nor one to a folder's name can be renamed. Paths are Linux's, and what other packages do on Windows doesn't show.
"""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

MODULES = ("fcntl", "grp", "pwd", "pty", "readline", "resource", "syslog", "termios", "tty", "pynq")
"""Modules that can't be imported."""
OF_OS = ("fork", "getuid", "geteuid", "getgid", "getpgid", "killpg", "mkfifo", "setsid", "sched_getaffinity")
"""Functions that the module os lacks."""
SIGNALS = ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE")
"""Signals that there are none of."""

_open, _replace, _rename = os.open, os.replace, os.rename


def _no_folder(path, *arguments, **options):
    if Path(path).is_dir():
        raise PermissionError(13, "Permission denied", str(path))
    return _open(path, *arguments, **options)


def _checked(rename, onto_files):
    def checked(old, new, **options):
        own = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
        if any(path == os.path.realpath(old) or path.startswith(f"{os.path.realpath(old)}/") for path in own):
            raise PermissionError(13, "The process cannot access the file because it is being used", str(old))
        if os.path.isdir(new) or (os.path.lexists(new) and not onto_files):
            raise PermissionError(13, "Access is denied", str(new))
        return rename(old, new, **options)

    return checked


def begin() -> None:
    """Let the rules hold in this process from now on; bitloom must not have been imported yet."""
    assert "bitloom" not in sys.modules
    multiprocessing.set_start_method("spawn")
    for name in MODULES:
        sys.modules[name] = None
    for name in OF_OS:
        delattr(os, name)
    for name in SIGNALS:
        delattr(signal, name)
    os.open = _no_folder
    os.replace = _checked(_replace, onto_files=True)
    os.rename = _checked(_rename, onto_files=False)


if __name__ == "__main__":
    begin()
    from bitloom.overlay.cli import main

    sys.argv = sys.argv[1:]
    main()
