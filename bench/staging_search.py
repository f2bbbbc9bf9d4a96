"""Random programs over all holders of state, staged and compared with plain Python lane by lane.

    python bench/staging_search.py --cases 20000 --jobs 2 --out bench/results/staging_search_cpu_2026-11-23.json

A case is right, refused at the user's line, or skipped (plain Python raises in a lane); a wrong number or an error of
another kind is a finding, and the exit code is 1. The programs are those of ``tests/lang/control/holder_programs.py``.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.lang.control.holder_programs import HOLDERS, verdict
from tests.search_options import add_options


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: collections.Counter[str] = collections.Counter()
    findings: list[dict[str, object]] = []
    seeds = range(options.first, options.first + options.cases)
    with multiprocessing.Pool(options.jobs) as pool:
        for done, (seed, (kind, text)) in enumerate(zip(seeds, pool.imap(verdict, seeds, 20), strict=True), 1):
            found[kind] += 1
            if kind in ("wrong", "foreign"):
                findings.append({"seed": seed, "kind": kind, "program": text})
                print(f"case {seed}: {kind}\n{text}\n")
            if done % 200 == 0 or done == options.cases:
                report(options.out, done, found, findings)
    return 1 if findings else 0


def report(out: Path | None, done: int, found: collections.Counter[str], findings: list[dict[str, object]]) -> None:
    """What the first ``done`` cases gave; written as the search goes, so that it may be stopped."""
    made = {
        "command": f"python {' '.join(sys.argv)}",
        "python": platform.python_version(),
        "holders": sorted(HOLDERS),
        "cases": done,
        **{kind: found[kind] for kind in ("right", "refused", "raises", "wrong", "foreign")},
        "findings": findings,
    }
    print({key: value for key, value in made.items() if key not in ("holders", "findings")}, flush=True)
    if out:
        out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
