"""What the checks say, as it is kept in ``tests/data/check_words.txt``: findings with and without each of their parts,
as text, JSON and SARIF; places in memory; the words of undefined values and of races.

``python -m tests.check.words`` writes that file after a change that is meant.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests import kept
from tilewright.errors import SimulationError
from tilewright.ir.core import Location, Op, Value
from tilewright.ir.runtime import LaunchConfig
from tilewright.ir.tensormap import TENSOR_MAP
from tilewright.ir.types import I32, MemSpace, PtrType
from tilewright.sim.checks.actors import Actor
from tilewright.sim.checks.clocks import ClockColumns
from tilewright.sim.checks.collect import Report
from tilewright.sim.checks.explain import explain
from tilewright.sim.checks.findings import MOST, Finding, Findings, Party
from tilewright.sim.checks.formats import as_json, document, sarif
from tilewright.sim.checks.places import MemoryPlace, global_memory, shared_memory
from tilewright.sim.checks.sites import Site
from tilewright.sim.checks.undefined import SINKS, Origin, finding_of
from tilewright.sim.empty_arrays import EmptyArray
from tilewright.sim.geometry import Geometry

FILE, COMMAND = "check_words.txt", "python -m tests.check.words"
HERE, THERE, AWAY = Location("/a/user.py", 7), Location("lib/other.py", 9), Location("/b/user.py", 8)


def op_at(where: Location | None, opcode: str = "load", **attrs: Any) -> Op:
    return Op(opcode, [], [], attrs, [], where)


def varied(full: Any, empty: Any) -> Iterator[Any]:
    """``full`` without each of its parts, and ``empty`` with each of them."""
    yield from (full, empty)
    for part in fields(full):
        yield replace(full, **{part.name: getattr(empty, part.name)})
        yield replace(empty, **{part.name: getattr(full, part.name)})


ACTORS = list(varied(Actor((1, 0, 2), 3, 5, (101, 0, 0), "tma", "loads"), Actor((0, 0, 0))))
PLACES = [
    *varied(MemoryPlace("shared", 4, 64, "ring", (3, 0), HERE, "at line 7"), MemoryPlace("shared", 1, 0)),
    *varied(MemoryPlace("global", 4, 64, "x", (3, 0), HERE, "at line 7"), MemoryPlace("global", 1, 0)),
    MemoryPlace("shared", 8, 64, "full", 2),
    MemoryPlace("global", 8, 64, "full", 2),
    MemoryPlace("registers", 8, 0, "acc"),
]
PARTIES = [
    *[
        Party("write", op_at(where), who, at)
        for where in (HERE, None)
        for who in (None, ACTORS[0])
        for at in (None, THERE)
    ],
    *[Party("made", None, None, at) for at in (None, THERE, AWAY)],
    *[Party("after a read", op_at(THERE), who) for who in ACTORS],
]


def findings() -> Iterator[Finding]:
    whole = Finding(
        "data-race",
        "two threads",
        [PARTIES[0], PARTIES[2]],
        PLACES[0],
        "no barrier",
        "a barrier",
        3,
        "note",
        "k",
        "by seed 7",
        2,
        True,
    )
    yield from varied(whole, Finding("simulation-error", "it stops", []))
    for place in PLACES:
        yield replace(whole, memory=place)
    for party in PARTIES:
        yield replace(whole, parties=[party])


def of_findings() -> Iterator[tuple[str, str]]:
    for k, finding in enumerate(findings()):
        given = as_json(finding)
        result = sarif([given], Path("/a"))["runs"][0]["results"]
        yield f"finding {k}", "\n".join([str(finding), json.dumps(given, indent=1), json.dumps(result, indent=1)])
    given = [as_json(Finding(rule, "", [])) for rule in ("a", "b", "a")]
    log = sarif(given)
    log["runs"][0]["tool"]["driver"].pop("version")
    yield "several", json.dumps([document(given), log], indent=1)


def of_reports() -> Iterator[tuple[str, str]]:
    """Findings of one key are one; what follows from others is left out; of many some are written out."""

    def finding(rule: str, *lines: int, does: str = "read", **more: Any) -> Finding:
        return Finding(rule, rule, [Party(does, op_at(Location("u.py", n))) for n in lines], **more)

    listed = {
        "none": [],
        "a note": [finding("slow", 1, level="note")],
        "the same": [finding("data-race", 1, 2), finding("data-race", 2, 1), finding("data-race", 1, 2, count=4)],
        "others": [finding("data-race", 1, 2), finding("data-race", 1, 3), finding("bounds", 1, 2)],
        "further apart": [finding("data-race", 1, 2, apart=a, count=a + 1) for a in (0, 2, 1, 2)],
        "less far": [finding("data-race", 1, 2, apart=a, count=a + 1) for a in (2, 0, 1)],
        "undefined": [finding("data-race", 1, 2), finding("uninitialised", 2, 5), finding("uninitialised", 3)],
        "undefined of writes": [finding("data-race", 1, 2, does="write"), finding("uninitialised", 2, 5)],
        "undefined of others": [finding("bounds", 1, 2), finding("uninitialised", 2, 5)],
        "early": [
            finding("data-race", 1, 2, early=True),
            finding("data-race", 2),
            finding("data-race", 2, 3),
            finding("bounds", 2),
            finding("data-race", 1),
        ],
        **{f"{n} of them": [finding("data-race", k) for k in range(n)] for n in (1, 2, MOST, MOST + 1, MOST + 3)},
    }
    for name, made in listed.items():
        found, report = Findings("kernel"), Report()
        for one in made:
            found.add(replace(one))
        before = str(found)
        found.drop_consequences()
        report.take(found)
        report.take(found)
        other = Findings("another kernel")
        for one in made[:1]:
            other.add(replace(one))
        report.take(other)
        yield name, "\n".join([before, str(found), str(report), str(report.rules), str(len(report.errors))])
    for findings_ in (None, listed["others"]):
        for what in ("", "it hangs"):
            for others in ((), (op_at(THERE), None)):
                for op in (None, op_at(HERE)):
                    error: Any = SimulationError("the text")
                    error.findings, error.what, error.op, error.others = findings_ and Findings("k"), what, op, others
                    for one in findings_ or ():
                        error.findings.add(replace(one))
                    report = Report()
                    report.add_error(error, "k", "a schedule")
                    report.add_error(error)
                    yield f"an error {bool(findings_)} {what} {len(others)} {op}", str(report)


def of_places() -> Iterator[tuple[str, str]]:
    base = np.arange(24, dtype=np.int32)
    strided = np.lib.stride_tricks.as_strided
    tensor = SimpleNamespace(element_size=lambda: 4, stride=lambda: (6, 1), shape=(4, 6))
    owners = {
        "rows": base.reshape(4, 6),
        "columns": base.reshape(6, 4).T,
        "a slice": base.reshape(4, 6)[:, ::2],
        "a number": base[0:1].reshape(()),
        "broadcast": np.broadcast_to(base[:6], (4, 6)),
        "reversed": base[::-1],
        "overlapping": strided(base, (4, 6), (8, 4)),
        "of torch": tensor,
        "of another": SimpleNamespace(shape=(4, 6)),
        "without strides": SimpleNamespace(element_size=lambda: 4, shape=(4,)),
        "bytes": np.zeros((4, 24), np.uint8),
        "without a size": SimpleNamespace(stride=lambda: (1,), shape=(4,)),
    }
    named = Value(PtrType(I32, MemSpace.GMEM, 4), "x"), Value(PtrType(I32, MemSpace.SMEM, 4), "s"), Value(I32, "n")
    ops = [
        None,
        op_at(HERE),
        *(
            Op("load", list(values), [], {}, [], HERE)
            for values in (
                named[:1],
                named[1:2],
                named[2:],
                named,
                named[::-1],
                [Value(TENSOR_MAP, "map")],
                [Value(PtrType(I32, MemSpace.GMEM, 4)), named[0]],
                [named[0], Value(PtrType(I32, MemSpace.GMEM, 4))],
            )
        ),
    ]
    for (name, owner), at in itertools.product(owners.items(), (0, 4, 24, 28, 92, 96, 400)):
        buffer = SimpleNamespace(owner=owner, low=16, base=4096)
        yield f"{name} {at}", str(global_memory(ops[2], buffer, 16 + at, 4))
    for k, op in enumerate(ops):
        for owner in (owners["rows"], None):
            yield f"operands {k}", str(global_memory(op, SimpleNamespace(owner=owner, low=0, base=4096), 8, 4))
    alloc = op_at(HERE, "smem.alloc")
    entry = SimpleNamespace(name="ring", element_at=lambda offset: offset // 4, alloc=alloc)
    for found in (None, entry):
        names: Any = SimpleNamespace(at=lambda _, found=found: found)
        yield f"shared {bool(found)}", repr(shared_memory(8, 4, names))


def of_undefined() -> Iterator[tuple[str, str]]:
    op, who = op_at(HERE, "add"), ACTORS[0]
    atoms = [SimpleNamespace(shuffles=shuffles) for shuffles in (False, True)]
    origins = [None, op, op_at(THERE), *(op_at(THERE, "call", atom=atom) for atom in atoms)]
    memories = [
        None,
        *(
            MemoryPlace(space, 4, 0, name)
            for space in ("shared", "registers", "global")
            for name in ("", "x", "x at byte 4")
        ),
    ]
    made = [None, *(EmptyArray(0, 64, 4, "numpy.empty", where) for where in (None, THERE))]
    for k, (origin, memory, array) in enumerate(itertools.product(origins, memories, made)):
        sink = list(SINKS)[k % len(SINKS)]
        finding = finding_of(sink, op, who, Origin(origin, memory, array), k % 3 + 1)
        yield f"undefined {k}", str(finding)


def of_races() -> Iterator[tuple[str, str]]:
    geometry = Geometry(LaunchConfig((4, 1, 1), (128, 1, 1)))
    agents = ["", "cp.async", "wgmma", "tma", "cp.async.bulk", "cp.async.bulk.read", "tcgen05.mma"]
    layout = ClockColumns(geometry, dict.fromkeys(agents[1:], False) | {"wgmma": True}, False)
    threads = {
        "warp": (0, 5),
        "block": (0, 40),
        "blocks": (0, layout.block * 32),
        "same": (3, 3),
        **{f"of {agent}": (0, layout.agent_unit(1, 1, k) * 32) for k, agent in enumerate(layout.agents)},
        "of tma": (0, layout.first_mbarrier * 32),
    }

    def site(verb: str, scope: str, agent: str, where: Location | None) -> Site:
        access: Any = SimpleNamespace(order="relaxed" if scope else "weak", scope=scope, agent=agent, proxy="generic")
        return Site(op_at(where), verb, access)

    seen: dict[tuple[str, str], list[str]] = {}
    verbs = [("load", "store"), ("store", "load"), ("store", "store"), ("atomic", "load")]
    for who, (now, then), mine, theirs, agent, line, shared, mbarriers in itertools.product(
        threads,
        verbs,
        ("", "cta", "gpu"),
        ("", "cta", "gpu"),
        agents,
        (HERE, THERE, None),
        (False, True),
        (False, True),
    ):
        sites = site(now, mine, agent, HERE), site(then, theirs, "", line)
        known: Any = SimpleNamespace(calls=[], mbarriers=mbarriers)
        words = explain(layout, *sites, list(threads[who]), shared, known)
        case = f"{who} {now}.{mine} {then}.{theirs} {agent or '-'} {line} {shared:d}{mbarriers:d}"
        seen.setdefault(words, []).append(case)
    for k, ((why, fix), cases) in enumerate(seen.items()):
        ends = [cases[0], *(b for a, b in itertools.pairwise(cases) if a[:9] != b[:9]), cases[-1]]
        yield f"race {k}", "\n".join([why, fix, f"{len(cases)} cases", *ends])


def texts() -> dict[str, str]:
    parts = (of_findings, of_reports, of_places, of_undefined, of_races)
    return {f"{part.__name__} {k} {name}": f"{name}\n{text}" for part in parts for k, (name, text) in enumerate(part())}


if __name__ == "__main__":
    kept.write(FILE, texts())
