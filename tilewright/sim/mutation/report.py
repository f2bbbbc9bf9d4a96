"""The mutation study as a table of text and as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter

from tilewright.sim.mutation.outcomes import EQUIVALENT, MISSED, NOTICED, Outcome, Study


def table(study: Study, all_of_them: bool = False) -> str:
    """The missed and the equivalent mutants a line each (``all_of_them``: the noticed, too), then the counts of each
    kernel and of each checker."""
    shown = [o for o in study.outcomes if all_of_them or o.verdict != NOTICED]
    rows = [("verdict", "by", "where", "instruction", "change"), *map(_row, shown)] if shown else []
    return "\n".join([*_columns(rows), *([""] if rows else []), *_columns(_counts(study)), "", *_checkers(study)])


def as_json(study: Study) -> str:
    """``{"score", "noticed", "equivalent", "missed", "mutants": [{kernel, file, line, instruction, change, verdict, by,
    text}]}``."""
    rows = [
        {
            "kernel": o.kernel,
            "file": o.mutant.location.file if o.mutant.location else "",
            "line": o.mutant.location.line if o.mutant.location else 0,
            "instruction": o.mutant.instruction,
            "change": o.mutant.what,
            "verdict": o.verdict,
            "by": o.by,
            "text": o.text,
        }
        for o in study.outcomes
    ]
    numbers = {verdict: len(study.of(verdict)) for verdict in (NOTICED, EQUIVALENT, MISSED)}
    return json.dumps({"score": round(study.score, 4), **numbers, "mutants": rows}, indent=1)


def _row(outcome: Outcome) -> tuple[str, ...]:
    return (outcome.verdict, outcome.by, _place(outcome), outcome.mutant.instruction, outcome.mutant.what)


def _place(outcome: Outcome) -> str:
    """The line, its file as seen from the current directory if it is below."""
    location = outcome.mutant.location
    if location is None:
        return ""
    relative = os.path.relpath(location.file)
    return f"{location.file if relative.startswith('..') else relative}:{location.line}"


def _counts(study: Study) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("kernel", "mutants", NOTICED, EQUIVALENT, MISSED, "score")]
    names = list(dict.fromkeys(o.kernel for o in study.outcomes))
    for name, part in [(n, Study([o for o in study.outcomes if o.kernel == n])) for n in names] + [("all", study)]:
        numbers = [len(part.of(verdict)) for verdict in (NOTICED, EQUIVALENT, MISSED)]
        rows.append((name, str(len(part.outcomes)), *map(str, numbers), f"{100 * part.score:.1f} %"))
    return rows if len(names) != 1 else rows[:-1]


def _checkers(study: Study) -> list[str]:
    by = Counter(o.by for o in study.of(NOTICED))
    return ["noticed by: " + ", ".join(f"{name} {count}" for name, count in by.most_common())] if by else []


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
