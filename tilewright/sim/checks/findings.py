"""Findings: what a checker has to say, once for each pair of places, with a count; and their text."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from tilewright.ir.core import Location, Op
from tilewright.reports import Shown
from tilewright.sim.checks.actors import Actor
from tilewright.sim.checks.places import MemoryPlace
from tilewright.sim.messages import source_line

MOST = 12  # findings that a report writes out
LEVELS = ("error", "note")


@dataclass
class Party:
    """One side of a finding: what it did (``"write"``, ``"after a read"``), at which op, and who. ``at``: the line of
    what is not an op of the kernel."""

    does: str
    op: Op | None
    who: Actor | None = None
    at: Location | None = None

    def __str__(self) -> str:
        by = f" by {self.who}" if self.who is not None else ""
        return f"{self.does}{by}, {source_line(self.location) or 'at an unknown place'}"

    @property
    def location(self) -> Location | None:
        return self.op.loc if self.op is not None else self.at


def key_of(rule: str, *places: Location | int) -> tuple[str, ...]:
    """:attr:`Finding.key` of parties at these lines (the id of an op that has none)."""
    return rule, *sorted(map(str, places))


@dataclass
class Finding(Shown):
    """Attributes:
    rule: its name, such as ``data-race``.
    what: one line.
    parties: the op at fault first, then the other side, where there is one.
    memory: which bytes.
    why: what ordered the parties or failed to.
    fix: the likely repair.
    count: how often.
    level: ``"error"`` ends the launch with an error; ``"note"`` is about speed or style.
    schedule: of an exploration, under which it was found; empty for the simulator's own.
    apart: how far the threads of a data race are apart: 0 in one warp, 1 in one block, 2 in two blocks.
    early: whether the first party read bytes before the copy that the second party issued: other findings follow.
    """

    rule: str
    what: str
    parties: list[Party]
    memory: MemoryPlace | None = None
    why: str = ""
    fix: str = ""
    count: int = 1
    level: str = "error"
    kernel: str = ""
    schedule: str = ""
    apart: int = 0
    early: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """The rule and the Python lines, in any order: findings of one key are one."""
        return key_of(self.rule, *(p.location or id(p.op) for p in self.parties))

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.what}", *map(str, self.parties)]
        lines += [f"{name}: {text}" for name, text in (("memory", self.memory), ("why", self.why)) if text]
        if self.schedule:
            lines.append(f"schedule: {self.schedule}")
        if self.count > 1:
            lines.append(f"{self.count} times at these lines")
        if self.fix:
            lines.append(f"to fix: {self.fix}")
        return "\n    ".join(lines)


@dataclass
class Findings(Shown):
    """The findings of a launch of one kernel, by their keys."""

    kernel: str
    found: dict[Hashable, Finding] = field(default_factory=dict)

    def counted(self, key: Hashable, count: int = 1, apart: int = 0) -> bool:
        """Whether this has been reported already, of threads as far apart; then it only counts. For checkers that make
        a finding's text with some effort: ask before, and give :meth:`add` the same key."""
        finding = self.found.get(key)
        if finding is None or finding.apart < apart:
            return False
        finding.count += count
        return True

    def add(self, finding: Finding, key: Hashable | None = None) -> None:
        """Report ``finding``, or count it where one with this key (its own: rule and lines) has been reported."""
        if key is None:
            key = finding.key
        if not self.counted(key, finding.count, finding.apart):
            finding.kernel = self.kernel
            if key in self.found:
                finding.count += self.found[key].count
            self.found[key] = finding

    def drop_consequences(self) -> None:
        """Leave out what only follows from another finding. A read that races with a write may come first and find what
        was not initialised; after an early read the copy of the next iteration arrives in the same stage, too."""
        raced = {str(p.location) for f in self if f.rule == "data-race" for p in f.parties if "read" in p.does}
        for key, finding in list(self.found.items()):
            if finding.rule == "uninitialised" and raced & {str(party.location) for party in finding.parties}:
                del self.found[key]
        for early in [finding for finding in self if finding.early]:
            copy = str(early.parties[1].location)
            for key, finding in list(self.found.items()):
                lines = {str(party.location) for party in finding.parties}
                if finding.rule == early.rule and lines == {copy}:
                    del self.found[key]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found.values())

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.level == "error"]

    def __str__(self) -> str:
        return self.text() if self.errors else f"checks of kernel {self.kernel!r}: no errors"

    def text(self) -> str:
        """The errors in words."""
        listed = self.errors
        texts = [str(finding) for finding in listed[:MOST]]
        if len(listed) > MOST:
            texts.append(f"and {len(listed) - MOST} more")
        count = f"{len(listed)} finding{'s' if len(listed) > 1 else ''}"
        return f"checks of kernel {self.kernel!r}: {count}\n  " + "\n  ".join(texts)
