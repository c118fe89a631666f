"""The command ``python -m tests.replay FOLDER [PART]...``."""

import argparse
from pathlib import Path

from . import designs, explored, imports, networks

PARTS = {"designs": designs, "networks": networks, "imports": imports, "explore": explored}


def main() -> None:
    """Write the files of the parts that are named, by default of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description="What this tree makes of given inputs.")
    parser.add_argument("folder", type=Path, help="where the files go, one folder a part")
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--design", action="append", metavar="NAME", help="of the designs, only these")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.parts} - {*PARTS})
    if unknown:
        parser.error(f"a part must be one of {', '.join(PARTS)}, got {', '.join(unknown)}")
    for part in arguments.parts:
        folder = arguments.folder / part
        folder.mkdir(parents=True, exist_ok=True)
        if part == "designs":
            designs.write(folder, arguments.design)
        else:
            PARTS[part].write(folder)


if __name__ == "__main__":
    main()
