"""The picture of the packages in docs/architecture.md, made of the import contract in pyproject.toml.

    python -m tools.packages

Each row of the picture is a layer of the contract. A package imports packages of lower rows only.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "packages.svg"

SUBJECTS = {
    "cli": "the command",
    "explorer": "this package in the browser",
    "jax": "JAX operations",
    "compat": "import cutlass",
    "cute_viz": "cute-viz's names",
    "viz": "pictures",
    "gemm": "the GEMM library",
    "cute": "the CuTe DSL's names",
    "utils": "its helpers",
    "pipeline": "mbarriers, stages",
    "analysis": "costs before a run",
    "tiled": "TiledCopy, TiledMma, TMA",
    "export": "compiled functions as C",
    "lang": "the Python front",
    "sim": "the CPU machine",
    "cuda": "the GPU machine",
    "atoms": "instructions, one class each",
    "ir": "ops, regions, arithmetic",
    "layout": "the algebra",
    "errors": "one exception family",
    "reports": "how results print",
    "location_keywords": "loc= and ip=",
    "experimental": "PTX by its names",
}

WIDTH, ROW, GAP, BOX = 760, 54, 10, 40


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["id"] == "packages")
    return [re.findall(r"tilewright\.(\w+)", layer) for layer in contract["layers"]]


def svg() -> str:
    """The picture as SVG: a box for each package with its name and its subject."""
    rows = layers()
    height = len(rows) * ROW + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        "<title>The packages of Tilewright; each imports packages of lower rows only</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for y, names in enumerate(rows):
        width = (WIDTH - GAP * (len(names) + 1)) / len(names)
        for x, name in enumerate(names):
            left, top = GAP + x * (width + GAP), GAP + y * ROW
            middle = left + width / 2
            parts += [
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{BOX}" rx="4" fill="#eef3fa" '
                'stroke="#5b7aa5"/>',
                f'<text x="{middle:.1f}" y="{top + 17}" text-anchor="middle" font-size="14" font-weight="bold" '
                f'fill="#1d2b40">{name}</text>',
                f'<text x="{middle:.1f}" y="{top + 33}" text-anchor="middle" font-size="12" fill="#3c4a5e">'
                f"{escape(SUBJECTS[name])}</text>",
            ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
