"""The options of a simulation: the seed, the schedule, the checks and the number of lanes at once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilewright.errors import ArgumentError
from tilewright.ir.target import architecture
from tilewright.sim.checks.registry import enabled_checkers

SCHEDULES = ("seeded", "lockstep")
SIZES = ("simulator", "gpu")


@dataclass(frozen=True)
class SimulatorOptions:
    """``seed``: of the schedule's random choices. ``schedule``: ``"seeded"`` (warps of a block run apart, in random
    order) or ``"lockstep"`` (all warps together; fastest). ``checks``: bounds and alignment of memory accesses.
    ``lanes``: about how many threads are resident at once; blocks beyond them run in waves. ``turns``: iterations of
    while loops that a warp may run before it counts as hung; ``idle_turns``: of loops that write memory, while nothing
    that their conditions are computed from changes. ``check``: what to look for (docs/checking.md): ``"default"`` (data
    races and their like, as far as that costs little), ``"all"``, ``"none"``, or names of checkers with commas between
    them. ``sms``: multiprocessors of the simulated GPU: a block must not wait for one that need not be resident.
    ``arch``: the architecture that kernels are meant for (``"sm_80"``): instructions that it lacks are errors;
    ``""``: any. ``sizes``: which kernel and tiles ``gemm`` takes where it may choose: ``"simulator"``, those that are
    simulated soonest, or ``"gpu"``, those (and the sharing of tiles) that suit a GPU of ``sms`` multiprocessors."""

    seed: int = 0
    schedule: str = "seeded"
    checks: bool = True
    lanes: int = 16384
    turns: int = 1 << 21
    idle_turns: int = 1 << 18
    check: str = "default"
    sms: int = 132
    arch: str = ""
    sizes: str = "simulator"

    def lets_pass(self, checker: str) -> bool:
        """Whether ``check`` leaves out this checker by its name, which also lets pass the faults of its kind.

        >>> SimulatorOptions(check="default, -exits").lets_pass("exits")
        True
        >>> SimulatorOptions(check="none").lets_pass("exits")
        False
        """
        return f"-{checker}" in self._words

    def is_thorough(self, checker: str) -> bool:
        """Whether ``check`` asks for all that this checker knows: by its name, or by ``all``.

        >>> [SimulatorOptions(check=c).is_thorough("divergence") for c in ("all", "default", "all,-divergence")]
        [True, False, False]
        """
        return not self.lets_pass(checker) and not {"all", checker}.isdisjoint(self._words)

    @property
    def _words(self) -> list[str]:
        return self.check.replace(" ", "").split(",")

    def __post_init__(self) -> None:
        """Refuse values that no launch could run with."""
        if self.schedule not in SCHEDULES:
            raise ArgumentError(f"schedule={self.schedule!r}; it is one of {', '.join(map(repr, SCHEDULES))}")
        if self.sizes not in SIZES:
            raise ArgumentError(f"sizes={self.sizes!r}; it is one of {', '.join(map(repr, SIZES))}")
        enabled_checkers(self.check)
        for name, kind in (
            ("seed", int),
            ("checks", bool),
            ("lanes", int),
            ("turns", int),
            ("idle_turns", int),
            ("sms", int),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ArgumentError(f"{name}={value!r}; it is {'True or False' if kind is bool else 'an int'}")
        if self.lanes < 1:
            raise ArgumentError(f"lanes={self.lanes}; the simulator needs at least one lane")
        if self.sms < 1:
            raise ArgumentError(f"sms={self.sms}; a GPU has at least one multiprocessor")
        if self.arch:
            architecture(self.arch, bare=True)
        for name in ("turns", "idle_turns"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name}={getattr(self, name)}; a loop needs at least one iteration")


def _from_environment() -> SimulatorOptions:
    """TILEWRIGHT_SIM_SEED, _SCHEDULE, _CHECKS (0 or 1), _LANES, _TURNS, _IDLE_TURNS, _CHECK (none, default, all),
    _SMS, _ARCH, _SIZES."""
    values: dict[str, object] = {}
    readers: dict[str, Callable[[str], object]] = {
        "seed": int,
        "schedule": str,
        "checks": _switch,
        "lanes": int,
        "turns": int,
        "idle_turns": int,
        "check": str,
        "sms": int,
        "arch": str,
        "sizes": str,
    }
    for name, read in readers.items():
        text = os.environ.get(f"TILEWRIGHT_SIM_{name.upper()}")
        if text:
            try:
                values[name] = read(text)
            except ValueError as wrong:
                raise ArgumentError(f"TILEWRIGHT_SIM_{name.upper()}={text!r}: {wrong}") from None
    return replace(SimulatorOptions(), **values)  # type: ignore[arg-type]  # read by the type of each field


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("it is 0 or 1")
    return text == "1"


_current: SimulatorOptions | None = None
_outside: list[list[SimulatorOptions]] = []
"""The options outside of each ``with options`` that has not ended."""


def current_options() -> SimulatorOptions:
    """The options that the next launch takes.

    >>> with options(sms=8):
    ...     current_options().sms
    8
    """
    global _current
    if _current is None:
        _current = _from_environment()
    return _current


def _changed(**changes: object) -> SimulatorOptions:
    unknown = set(changes) - set(SimulatorOptions.__dataclass_fields__)
    if unknown:
        names = ", ".join(SimulatorOptions.__dataclass_fields__)
        raise ArgumentError(f"unknown simulator option {sorted(unknown)[0]!r}; the options are {names}")
    return replace(current_options(), **changes)  # type: ignore[arg-type]  # checked by the class


def set_options(**changes: object) -> None:
    """Change options (the fields of :class:`SimulatorOptions`) for the rest of the process.

    Raises ArgumentError for an option that there is not, or a value that it cannot have.

    >>> before = current_options().seed
    >>> set_options(seed=7)
    >>> current_options().seed
    7
    >>> set_options(seed=before)
    """
    global _current
    _current = _changed(**changes)


@contextlib.contextmanager
def options(**changes: object) -> Iterator[SimulatorOptions]:
    """Change options inside a ``with`` block, for all threads of the process.

    >>> with options(seed=3) as chosen:
    ...     chosen.seed
    3
    """
    global _current
    layer, chosen = [current_options()], _changed(**changes)
    _outside.append(layer)
    _current = chosen
    try:
        yield chosen
    finally:
        # Blocks of several threads may end in any order: one that is not the last to have begun leaves what it found
        # to the next one.
        place = next(i for i, other in enumerate(_outside) if other is layer)
        del _outside[place]
        if place == len(_outside):
            _current = layer[0]
        else:
            _outside[place][0] = layer[0]
