"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository."""
SOURCES = ROOT / "src"
"""Folder that an interpreter which runs this checkout's code must find first (PYTHONPATH)."""
