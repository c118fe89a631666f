"""The command ``bitloom`` as ``python -m bitloom``."""

from bitloom.overlay.cli import main

if __name__ == "__main__":  # and not where a tool imports every module
    main()
