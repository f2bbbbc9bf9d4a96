"""Pages of measurements, one for each subject: charts of bench/results, and the dated notes, the newest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.chart import Bar, BarChart
from tools.speed import BEHIND, BEHIND_BF16, H100, HOPPER, LIBRARY, OURS, SCALED, SHAPES, UNALIGNED, Row, chart, stored

LAST_BEHIND = "gemm_library_behind_small_night_h200_2026-11-28"
"""The newest run behind a small kernel, which has one type of each set."""
ROOT = Path(__file__).parents[2]
NOTES = ROOT / "bench" / "notes"
HEADING = re.compile(r"^# (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Subject:
    """A page: its sentence, its charts by title, and words that occur in the names of its notes."""

    title: str
    says: str
    rows: dict[str, tuple[tuple[Row, ...], str]]
    notes: tuple[str, ...]


def _behind(shapes: str, name: str, fp16: str = BEHIND, bf16: str = LAST_BEHIND) -> tuple[Row, ...]:
    return tuple(
        Row(f"{name}, {shown}", file, {"kernel": "tilewright", "set": shapes, "dtype": dtype})
        for shown, dtype, file in (("fp16", "f16", fp16), ("bf16", "bf16", bf16))
    )


SCALES = (
    ("one scale each", SCALED, "tensor"),
    ("of rows and columns", SCALED, "row"),
    ("1 x 128 by 128 x 128", "scaled_h200_2026-11-28", "block"),
)
"""Scales of e4m3: the name, the file that has them last, and their set there."""
FP8_GROUPED = "grouped_h200_2026-11-29"
GROUPS = tuple(
    (f"{form} {spread}", file)
    for form, file in (("forward", "grouped_h200_2026-11-29"), ("weights", "grouped_h200_2026-11-28"))
    for spread in ("even", "skewed")
)
"""Products of groups: the set, and the file that has it last."""

SUBJECTS = {
    "hopper": Subject(
        "Products on Hopper",
        "fp16 and bf16 by TMA and wgmma, against cuBLAS in the same run. Inputs are normal; buffers rotate through "
        "more than the L2 cache. In a row, products overlap at their beginnings; behind a small kernel of PyTorch's, "
        "as in a model, they do not.",
        {
            "in a row, one H200": ((
                Row("8 large, fp16", HOPPER, {**OURS, "set": "large"}),
                Row("8 large, bf16", HOPPER, {"kernel": "tilewright", "dtype": "bf16", "set": "large"}),
                Row("6 decode, fp16", HOPPER, {**OURS, "set": "decode"}),
                Row("6 decode, bf16", HOPPER, {"kernel": "tilewright", "dtype": "bf16", "set": "decode"}),
                Row("64 random, fp16", LIBRARY, {**OURS, "set": "streamk_random"}),
                Row("64 random, fp16, tuned", "gemm_library_tuned_h200_2026-11-22", {"kernel": "tuned"}),
                Row("32 of another draw, fp16", "gemm_library_random_h200_2026-11-22", OURS),
                Row("24 unaligned, fp16", UNALIGNED, {**OURS, "set": "unaligned"}),
            ), "of cuBLAS"),
            "behind a small kernel, one H200": ((
                *_behind("large", "8 large"), *_behind("decode", "6 decode", LAST_BEHIND),
                *_behind("streamk_random", "64 random", LAST_BEHIND, BEHIND_BF16),
            ), "of cuBLAS"),
            "in a row, one H100": (tuple(
                Row(f"{name}, fp16", H100, {**OURS, "set": which})
                for name, which in (("8 large", "large"), ("6 decode", "decode"), ("64 random", "streamk_random"),
                                    ("24 unaligned", "unaligned"))
            ), "of cuBLAS"),
        },
        ("hopper", "h100", "small-and-long", "ping-pong", "dependent-launch", "split-k", "model-of-the-choice",
         "loads-or", "behind-other", "first-microseconds", "small-products-again", "set-up-of-small"),
    ),
    "narrow": Subject(
        "8-bit and 4-bit operands",
        "e4m3 with scales against torch._scaled_mm, 23 shapes: squares, linear layers, DeepSeek-V3's.",
        {
            "e4m3 with scales, bf16 out, one H200": (
                tuple(Row(name, file, {"kernel": "ours", "set": kind}) for name, file, kind in SCALES),
                "of torch._scaled_mm",
            ),
            "groups of e4m3 matrices, one H200": (
                tuple(Row(f"{form} groups", FP8_GROUPED, {"set": f"fp8 {form}"}, "torch_us")
                      for form in ("even", "skewed")),
                "of PyTorch",
            ),
        },
        (
            "scaled-fp8",
            "4-bits",
            "scales-of-blocks",
            "scales-of-rows",
            "weights-in-registers",
            "rows-of-8-bits",
            "weights-written-out",
            "groups-from-tile",
        ),
    ),
    "ampere": Subject(
        "Products by mma.sync",
        "The kernels that an Ampere GPU would run too, on one H200, against cuBLAS, which uses wgmma there.",
        {
            f"{name}, fp16": (
                tuple(Row(title, SHAPES, {"kernel": kernel, "set": which}, is_peer="CUTLASS" in kernel)
                      for title, kernel in (("library's choice", "auto"), ("data-parallel", "data-parallel"),
                                            ("CUTLASS's Stream-K", "CUTLASS Stream-K"))),
                "of cuBLAS",
            )
            for which, name in (("large", "8 large products"), ("decode", "6 decode shapes"),
                                ("streamk_random", "64 random shapes"))
        },
        ("multistage", "stream-k"),
    ),
    "models": Subject(
        "Products in models",
        "Stacks, groups and epilogues against PyTorch's own, one H200, bf16.",
        {
            "stacks in CUDA graphs": (
                (Row("batched", "batched_h200_2026-11-24", {}, "torch_us"),), "of torch.bmm",
            ),
            "groups of matrices": (
                tuple(Row(form, file, {"set": form}, "torch_us") for form, file in GROUPS), "of torch._grouped_mm",
            ),
            "products with an epilogue": (
                (Row("24 epilogues", "epilogues_h200_2026-11-24", {}, "torch_us"),), "of PyTorch",
            ),
        },
        ("products-in-a-model", "products-of-models", "first-step", "few-kernels", "blackwell-kernels",
         "host-time", "repeated-calls", "new-shapes",
         "other-programs", "libraries"),
    ),
    "simulator": Subject(
        "The simulator and its checks",
        "Seconds on two cores of a CPU: a kernel alone, with the default checks, and with all of them.",
        {},
        ("simulator", "cost-of-the", "short-cuts", "searches-and-mutants", "continuous-integration",
         "time-of-the-tests"),
    ),
    "starting": Subject(
        "Launches, compilation, imports",
        "What a call costs beside its kernel.",
        {},
        ("overheads", "size-of", "launches-at", "six-exercises"),
    ),
}  # fmt: skip


def charts(name: str) -> Iterator[BarChart]:
    """The charts of a subject."""
    for title, (rows, unit) in SUBJECTS[name].rows.items():
        yield chart(title, rows, unit, ("bar: geometric mean; line: worst to best",))
    if name == "simulator":
        records = stored("sim_checks_cpu_2026-11-28")["records"]
        kinds = {"none": "no checks", "default": "default", "all": "all"}
        bars = [
            Bar(f"{r['what']}, {said}", 1e3 * r[kind], peer=kind == "none")
            for r in records
            for kind, said in kinds.items()
        ]
        yield BarChart("simulating a kernel, sim_checks_cpu_2026-11-28", bars, "ms")
    if name == "starting":
        launches = stored("launch_h200_2026-11-24")["records"]
        bars = [Bar(r["what"], r["us"], peer=_is_pytorch(r["what"])) for r in launches]
        yield BarChart("host time of a call, launch_h200_2026-11-24", bars, "us")
        cold = stored("laptop_cpu_2026-11-22")["records"]
        bars = [Bar(r["what"], 1e3 * r["seconds"]) for r in cold if r["what"].startswith("import")]
        bars += [Bar(f"{r['what']}, NVRTC", 1e3 * r["nvrtc"]) for r in cold if "nvrtc" in r]
        yield BarChart("importing and compiling, laptop_cpu_2026-11-22", bars, "ms")


def _is_pytorch(what: str) -> bool:
    return what.split(": ", 1)[-1].startswith("torch.") and "tilewright" not in what


def notes_of(name: str) -> list[Path]:
    """The dated notes of a subject, the newest first."""
    words = SUBJECTS[name].notes
    found = [path for path in NOTES.glob("2*.md") if any(word in path.stem[11:] for word in words)]
    return sorted(found, reverse=True)


def page(name: str, folder: Path) -> str:
    """The page of a subject as Markdown; its charts go into ``folder``."""
    subject = SUBJECTS[name]
    parts = [f"# {subject.title}", subject.says]
    for number, drawn in enumerate(charts(name)):
        drawn.save(folder / f"{name}_{number}.svg")
        parts.append(f"![{drawn.title}]({name}_{number}.svg)")
    if subject.rows:
        table = ["| what | geometric mean | range | shapes | file in bench/results |", "|---|---|---|---|---|"]
        for rows, unit in subject.rows.values():
            for row in rows:
                bar, count = row.bar(), len(row.speeds())
                said = f"{bar.value:.2f} {unit} | {bar.low:.2f} to {bar.high:.2f} | {count}"
                table.append(f"| {row.name} | {said} | `{row.file}.json` |")
        parts += ["## The numbers", "\n".join(table)]
    parts += ["## What was tried", "The newest first.", _table(notes_of(name))]
    return "\n\n".join(parts) + "\n"


def _table(notes: list[Path]) -> str:
    rows = ["| date | page |", "|---|---|"]
    for note in notes:
        heading = HEADING.search(note.read_text(encoding="utf-8"))
        rows.append(f"| {note.stem[:10]} | [{heading[1] if heading else note.stem}]({note.name}) |")
    return "\n".join(rows)


def write(folder: Path) -> None:
    """Write the pages of the subjects into ``folder``, and name them on the page that is the index there."""
    rows = ["| subject | |", "|---|---|"]
    for name, subject in SUBJECTS.items():
        (folder / f"{name}.md").write_text(page(name, folder), encoding="utf-8")
        rows.append(f"| [{subject.title}]({name}.md) | {subject.says.split('. ')[0].rstrip('.')} |")
    index = folder / "index.md"
    title, _, rest = index.read_text(encoding="utf-8").partition("\n")
    index.write_text("\n".join([title, "", "By subject, with charts:", "", *rows, rest]), encoding="utf-8")
