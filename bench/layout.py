"""What the layout algebra costs, beside pycute where that package can be imported.

    python bench/layout.py [--write]

Operands are distinct and caches empty in the first column, so that every call does the work; the last column repeats
the same call, as a loop in a program does. CPU time of one process, the best of 15 rounds; where pycute comes from does
not matter (it is in the CUTLASS repository, python/pycute): put its directory on PYTHONPATH.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

from figures import median_seconds, table, write_results

from tilewright import layout as L
from tilewright.layout.cache import clear_caches

Call = tuple[Any, ...]
ROUNDS = 15


def random_layout(rng: random.Random, modes: int = 4) -> tuple[Any, Any]:
    """A compact layout of powers of two and threes in random order, two modes nested into one."""
    shape = [rng.choice((2, 4, 8, 3, 16)) for _ in range(modes)]
    order = rng.sample(range(modes), modes)
    stride = [0] * modes
    step = 1
    for i in order:
        stride[i], step = step, step * shape[i]
    nested_shape = (shape[0], (shape[1], shape[2]), *shape[3:])
    return nested_shape, (stride[0], (stride[1], stride[2]), *stride[3:])


def cases(rng: random.Random, count: int) -> dict[str, list[tuple[Any, ...]]]:
    """Operands of each operation as (shape, stride) pairs and ints."""
    made: dict[str, list[tuple[Any, ...]]] = {
        name: []
        for name in (
            "composition",
            "complement",
            "logical_divide",
            "coalesce",
            "right_inverse",
            "logical_product",
            "make_layout",
        )
    }
    while len(made["make_layout"]) < count:
        a = random_layout(rng)
        total = L.size(a[0])
        first, last = a[0][0], a[0][2]
        made["composition"].append((a, ((first, last), (1, total // last))))
        made["complement"].append((a, total * rng.randrange(1, 64)))
        made["logical_divide"].append((a, ((first, last), (1, total // last))))
        made["coalesce"].append((a,))
        made["right_inverse"].append((a,))
        made["logical_product"].append((a, ((rng.randrange(2, 64), 4), (4, 1))))
        made["make_layout"].append((a,))
    return made


def seconds_each(function: Callable[..., Any], calls: list[Call]) -> float:
    """The best round's mean time of one call."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for call in calls:
            function(*call)
        rounds.append((time.process_time() - start) / len(calls))
    return min(rounds)


def built(calls: list[tuple[Any, ...]], layout: Callable[[Any, Any], Any]) -> list[Call]:
    return [tuple(layout(*x) if isinstance(x, tuple) else x for x in call) for call in calls]


def distinct_seconds(function: Callable[..., Any], calls: list[tuple[Any, ...]], layout: Any) -> float:
    """Every round meets operands that were made a moment ago and an empty cache."""
    rounds = []
    for _ in range(ROUNDS):
        clear_caches()
        operands = built(calls, layout)
        start = time.process_time()
        for call in operands:
            function(*call)
        rounds.append((time.process_time() - start) / len(operands))
    return min(rounds)


def records() -> list[dict[str, Any]]:
    """One record an operation, in microseconds."""
    try:
        import pycute
    except ImportError:
        pycute = None
    found = []
    for name, raw in cases(random.Random(0), 2000).items():
        ours = getattr(L, name)
        record: dict[str, Any] = {"what": name}
        if name == "make_layout":
            raw = [call[0] for call in raw]
            record["us"] = seconds_each(L.Layout, raw) * 1e6
            if pycute:
                record["pycute_us"] = seconds_each(pycute.Layout, raw) * 1e6
        else:
            record["us"] = distinct_seconds(ours, raw, L.Layout) * 1e6
            if pycute:
                record["pycute_us"] = seconds_each(getattr(pycute, name), built(raw, pycute.Layout)) * 1e6
            record["repeated_us"] = seconds_each(ours, built(raw[:1], L.Layout) * 2000) * 1e6
        found.append(record)
    big = L.make_layout((100, (100, 10), 100), stride=(1000, (1, 100), 100000))
    found.append({"what": "offsets of 1e7 coordinates", "us": median_seconds(lambda: L.offsets(big)) * 1e6})
    return found


def main() -> None:
    found = records()
    header = ("operation", "us", "pycute us", "ratio", "repeated us")
    rows = []
    for r in found:
        peer = r.get("pycute_us")
        cells = (f"{peer:.2f}" if peer else "", f"{peer / r['us']:.1f}" if peer else "")
        rows.append((r["what"], f"{r['us']:.2f}", *cells, f"{r['repeated_us']:.2f}" if "repeated_us" in r else ""))
    table("layout algebra", rows, header)
    if "--write" in sys.argv:
        print(write_results("layout", "cpu", found))


if __name__ == "__main__":
    main()
