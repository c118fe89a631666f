"""What pyproject.toml can't say: without the links in src/bitloom there is nothing to install."""

from pathlib import Path

from setuptools import setup

LINKS = [Path("src/bitloom", name) for name in ("boards", "driver", "golden", "hls_gen", "notebooks", "overlay")]

if not all(link.is_dir() for link in LINKS):
    raise SystemExit(
        "src/bitloom has links to the folders golden, driver and others, which this copy of the repository has lost: "
        "clone with git clone -c core.symlinks=true (on Windows in developer mode), or install a wheel or an sdist"
    )
setup()
