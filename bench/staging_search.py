"""Random programs over all holders of state, staged and compared with plain Python lane by lane.

    python bench/staging_search.py --cases 20000 --first 0 --out bench/results/staging_search_cpu_2026-11-23.json

A case is right, refused at the user's line, or skipped (plain Python raises in a lane); a wrong number or an error of
another kind is a finding, and the exit code is 1. The programs are those of ``tests/lang/control/holder_programs.py``.
"""

from __future__ import annotations

import argparse
import collections
import json
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.lang.control.holder_programs import HOLDERS, verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: collections.Counter[str] = collections.Counter()
    findings = []
    begin = time.process_time()
    for seed in range(options.first, options.first + options.cases):
        kind, text = verdict(seed)
        found[kind] += 1
        if kind in ("wrong", "foreign"):
            findings.append({"seed": seed, "kind": kind, "program": text})
            print(f"case {seed}: {kind}\n{text}\n")
    report = {
        "command": f"python {' '.join(sys.argv)}",
        "python": platform.python_version(),
        "holders": sorted(HOLDERS),
        "cases": options.cases,
        **{kind: found[kind] for kind in ("right", "refused", "raises", "wrong", "foreign")},
        "cpu_seconds": round(time.process_time() - begin),
        "findings": findings,
    }
    print({key: value for key, value in report.items() if key not in ("holders", "findings")})
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
