"""Findings as JSON, and as SARIF 2.1.0, which code-review sites show at the lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.ir.core import Location
from tilewright.sim.checks.actors import Actor
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.places import MemoryPlace

Json = dict[str, Any]
LEVELS = {"error": "error", "note": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_json(finding: Finding) -> Json:
    """A finding as a dictionary of plain values; what is not known is left out."""
    fields: Json = {"rule": finding.rule, "level": finding.level, "kernel": finding.kernel, "what": finding.what}
    fields["parties"] = [_party(party) for party in finding.parties]
    if finding.memory is not None:
        fields["memory"] = _memory(finding.memory)
    fields |= {
        name: text
        for name, text in (("why", finding.why), ("fix", finding.fix), ("schedule", finding.schedule))
        if text
    }
    fields["count"] = finding.count
    fields["text"] = str(finding)
    return fields


def _party(party: Party) -> Json:
    fields: Json = {"does": party.does, "location": _location(party.location)}
    if party.who is not None:
        fields["who"] = _actor(party.who)
    return fields


def _location(where: Location | None) -> Json | None:
    if where is None:
        return None
    return {"file": where.file, "line": where.line, "text": linecache.getline(where.file, where.line).strip()}


def _actor(who: Actor) -> Json:
    fields = {
        "warp": who.warp,
        "lane": who.lane,
        "thread": who.thread,
        "agent": who.agent or None,
        "role": who.role or None,
    }
    return {"block": list(who.block)} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value is not None
    }


def _memory(memory: MemoryPlace) -> Json:
    fields: Json = {"space": memory.space, "bytes": memory.size, "offset": memory.offset}
    if memory.name:
        fields["tensor"] = memory.name
    if memory.element is not None:
        fields["element"] = list(memory.element) if isinstance(memory.element, tuple) else memory.element
    if memory.allocated is not None:
        fields["allocated"] = _location(memory.allocated)
    return fields


def document(findings: Iterable[Json]) -> Json:
    """The JSON document of findings that :func:`as_json` made."""
    return {"tool": "tilewright", "version": 1, "findings": list(findings)}


def sarif(findings: Iterable[Json], root: Path | None = None) -> Json:
    """The SARIF log of findings that :func:`as_json` made. Files below ``root`` (the current folder) are named relative
    to it, as code-review sites want them."""
    from tilewright import __version__

    base = (root or Path.cwd()).resolve()
    listed = list(findings)
    rules = list(dict.fromkeys(finding["rule"] for finding in listed))
    driver = {"name": "tilewright", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    results = [_result(finding, rules.index(finding["rule"]), base) for finding in listed]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: Json, rule: int, base: Path) -> Json:
    places = [
        _place(party["location"], base, f"{party['does']}{_by(party)}")
        for party in finding["parties"]
        if party["location"]
    ]
    more = [f"{name}: {finding[name]}" for name in ("why", "fix", "schedule") if name in finding]
    fields: Json = {
        "ruleId": finding["rule"],
        "ruleIndex": rule,
        "level": LEVELS[finding["level"]],
        "message": {"text": "\n".join([finding["what"], *more])},
        "locations": places[:1],
        "relatedLocations": [{"id": k, **place} for k, place in enumerate(places[1:], 1)],
        "occurrenceCount": finding["count"],
        "properties": {"kernel": finding["kernel"], "text": finding["text"]},
    }
    # Without folders, so that a finding keeps its fingerprint in every checkout.
    lines = [
        f"{party['location']['file']}:{party['location']['line']}" for party in finding["parties"] if party["location"]
    ]
    fields["partialFingerprints"] = {"rule/lines": ":".join([finding["rule"], *sorted(Path(p).name for p in lines)])}
    return fields


def _by(party: Json) -> str:
    who = party.get("who")
    if not who:
        return ""
    named = [f"{name} {who[name]}" for name in ("agent", "block", "warp", "lane") if name in who]
    return f" by {', '.join(named)}"


def _place(where: Json, base: Path, text: str) -> Json:
    file = Path(where["file"])
    if file.is_relative_to(base):
        file = file.relative_to(base)
    uri = file.as_uri() if file.is_absolute() else file.as_posix()
    region: Json = {"startLine": max(1, where["line"])}
    if where["text"]:
        region["snippet"] = {"text": where["text"]}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}, "message": {"text": text}}
