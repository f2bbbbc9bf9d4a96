"""What bench/results say of speed, by subject: rows with their geometric mean and range, and charts of them.

    python -m tools.speed [--check]

draws docs/pictures/speed.svg, the chart of the site's first page. With --check nothing is written; the exit status
says whether the file is what would be drawn.
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.chart import Bar, BarChart

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PICTURE = ROOT / "docs" / "pictures" / "speed.svg"


@dataclass(frozen=True)
class Row:
    """Records of a file: those that have all of ``fields``. Their speed is the time of ``peer`` by ``ours``."""

    name: str
    file: str
    fields: dict[str, str]
    peer: str = "cublas_us"
    ours: str = "us"
    is_peer: bool = False

    def speeds(self) -> list[float]:
        records = stored(self.file)["records"]
        found = [r for r in records if all(r.get(name) == value for name, value in self.fields.items())]
        if not found:
            raise ValueError(
                f"bench/results/{self.file}.json has no record with {self.fields}, which {self.name!r} shows"
            )
        return [r[self.peer] / r[self.ours] for r in found]

    def bar(self) -> Bar:
        speeds = self.speeds()
        mean, low, high = statistics.geometric_mean(speeds), min(speeds), max(speeds)
        said = f"{self.name}: {mean:.2f} ({low:.2f} to {high:.2f}) of {len(speeds)}, {self.file}.json"
        return Bar(self.name, mean, low, high, self.is_peer, said)


def stored(file: str) -> dict[str, Any]:
    """The contents of a file of bench/results."""
    found: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
    return found


LIBRARY, BEHIND = "gemm_library_night_h200_2026-11-28", "gemm_library_behind_small_h200_2026-11-24"
BEHIND_BF16, HOPPER = "gemm_library_behind_small_bf16_h200_2026-11-24", "gemm_hopper_h200_2026-11-22"
UNALIGNED, H100 = "gemm_library_h200_2026-11-22", "gemm_library_h100_2026-11-22"
SCALED, SHAPES = "scaled_later_h200_2026-11-28", "shapes_h200_2026-11-20"
OURS = {"kernel": "tilewright", "dtype": "f16"}

FIRST = (
    Row("8 large products, fp16", HOPPER, {**OURS, "set": "large"}),
    Row("6 decode shapes, fp16", LIBRARY, {**OURS, "set": "decode"}),
    Row("64 random shapes, fp16", LIBRARY, {**OURS, "set": "streamk_random"}),
    Row(
        "the same, CUTLASS's Stream-K for Ampere",
        SHAPES,
        {"kernel": "CUTLASS Stream-K", "set": "streamk_random"},
        is_peer=True,
    ),
    Row("24 unaligned shapes, fp16", UNALIGNED, {**OURS, "set": "unaligned"}),
    Row("23 shapes of e4m3, scales of rows", SCALED, {"kernel": "ours", "set": "row"}),
)
"""The rows of the README and of the first page."""


def chart(title: str, rows: tuple[Row, ...], unit: str, notes: tuple[str, ...] = ()) -> BarChart:
    return BarChart(title, [row.bar() for row in rows], unit, 1.0, notes)


def first_chart() -> BarChart:
    note = "bar: geometric mean; line: worst to best; grey: not Tilewright; e4m3: of torch._scaled_mm"
    return chart("Speed on one H200, as a fraction of cuBLAS", FIRST, "of cuBLAS", (note,))


def is_current() -> bool:
    """Whether docs/pictures/speed.svg is what bench/results say."""
    return PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == first_chart().svg()


def main() -> None:
    if "--check" in sys.argv[1:]:
        sys.exit(0 if is_current() else f"{PICTURE.name} is out of date: run python -m tools.speed")
    first_chart().save(PICTURE)


if __name__ == "__main__":
    main()
