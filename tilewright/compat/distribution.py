"""The metadata of ``nvidia-cutlass-dsl`` for ``importlib.metadata`` while ``cutlass`` is served."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path

NAME = "nvidia-cutlass-dsl"
VERSION = "4.6.2"  # of the public names that are followed; libraries choose between spellings by it


class Served(Distribution):
    """The metadata of the names that are served: a name and a version, and no files."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: served by Tilewright\n"

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(__file__).parent / path


def distributions(name: str | None) -> Iterator[Distribution]:
    """The distribution ``name``, if it is the one that is served; none for a list of all that is installed."""
    if name is not None and name.lower().replace("_", "-").replace(".", "-") == NAME:
        yield Served()
