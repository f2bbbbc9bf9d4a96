"""Draw the pictures of the documentation into docs/pictures.

    python -m tools.pictures [--check]

With --check nothing is written; the exit status says whether the files of docs/layouts.md and docs/models.md are what
would be drawn.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tilewright import Float16, Float32
from tilewright.cli import demo
from tilewright.cute.nvgpu import CopyUniversalOp, warp
from tilewright.layout import Layout, make_layout_tv, parse
from tilewright.tiled import make_copy_atom, make_tiled_copy_C, make_tiled_mma
from tilewright.viz import (
    Figure,
    composition_figure,
    divide_figure,
    layout_figure,
    mma_atom_figure,
    raster_figure,
    retile_figure,
    swizzle_figure,
    tv_figure,
)
from tools import hopper_pictures, speed

STREAM_K = "streamk 384 384 2048 --sms 8 --occupancy 1 --machine cpu --picture".split()  # of docs/matmul.md
FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def figures() -> dict[str, Figure]:
    """The pictures by file name."""
    tiler, threads_values = make_layout_tv(Layout((4, 8), (8, 1)), Layout((2, 2)))
    mma = make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    wide_mma = make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), permutation_mnk=(16, 16, 16))
    # The words 4t + p of four chunks of 8 elements of K of a prepared weight: pair p of chunk t.
    words, chunks = parse("((4,4),2):((8,1),4)"), (4, 8)
    store = make_tiled_copy_C(make_copy_atom(CopyUniversalOp(), Float32, num_bits_per_copy=64), wide_mma)
    return {
        "strides.svg": layout_figure(parse("(2,(2,2)):(4,(2,1))"), show=("coordinate", "index", "offset")),
        "composition.svg": composition_figure(parse("(6,2):(8,2)"), parse("(4,3):(3,1)")),
        "divide.svg": divide_figure(parse("(6,8):(8,1)"), (3, 4)),
        "interleaved.svg": divide_figure(parse("(6,8):(8,1)"), (parse("3:2"), parse("(2,2):(1,4)"))),
        "swizzle.svg": swizzle_figure(parse("Sw<3,0,3> o 0 o (8,8):(8,1)")),
        "threads_values.svg": tv_figure(threads_values, tiler),
        "mma.svg": mma_atom_figure(mma),
        "retile.svg": retile_figure(store, wide_mma, "C", thread=5, tile=(32, 16)),
        "prepared_mma_sync.svg": tv_figure(words, chunks, color_by=thread_of_mma_sync),
        "prepared_wgmma.svg": tv_figure(words, chunks, color_by=thread_of_wgmma),
        "raster.svg": raster_figure("grouped_n", (6, 8), group=4, concurrent=12),
        "stream_k.svg": divide_figure(Layout((8, 9)), 18, names=("step", "multiprocessor")),
    }


def thread_of_mma_sync(word: int, _: int) -> int:
    """Which of the four threads of a row takes a word of a prepared weight."""
    return word // 4


def thread_of_wgmma(word: int, _: int) -> int:
    """Which of the four threads of a row takes a word of a prepared weight."""
    return word % 4


def outdated() -> list[str]:
    """Names of the files that are missing or differ from what would be drawn."""
    drawn = {FOLDER / name: figure.svg() for name, figure in figures().items()}
    return [path.name for path, text in drawn.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> None:
    if "--check" in sys.argv[1:]:
        stale = outdated()
        sys.exit(f"out of date: {', '.join(stale)}; run python -m tools.pictures" if stale else 0)
    for name, figure in figures().items():
        figure.save(FOLDER / name)
    demo.draw(FOLDER)  # of the README
    hopper_pictures.main()
    speed.first_chart().save(speed.PICTURE)
    command = [sys.executable, "-m", "tilewright", *STREAM_K, str(FOLDER / "streamk_schedules.svg")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
