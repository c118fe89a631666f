"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository."""
SOURCES = ROOT / "src"
"""What an interpreter that runs this checkout's code must find first (PYTHONPATH)."""
