"""The command ``bitloom`` as ``python -m bitloom``."""

from bitloom.overlay.cli import main

main()
