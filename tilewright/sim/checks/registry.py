"""The checkers by name, and which of them a text such as ``"default"`` or ``"races,mbarriers"`` chooses."""

from __future__ import annotations

from tilewright.errors import ArgumentError, nearest
from tilewright.sim.checks.architectures import Architectures
from tilewright.sim.checks.arithmetic import Arithmetic
from tilewright.sim.checks.bounds import Bounds
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.dependents import Dependents, EarlyLaunches
from tilewright.sim.checks.divergence import Divergence
from tilewright.sim.checks.exits import Exits
from tilewright.sim.checks.global_proxies import GlobalProxies
from tilewright.sim.checks.mbarriers import MbarrierRules
from tilewright.sim.checks.performance import Performance
from tilewright.sim.checks.proxies import Proxies
from tilewright.sim.checks.races import Races
from tilewright.sim.checks.registers_in_flight import RegistersInFlight
from tilewright.sim.checks.residency import Residency
from tilewright.sim.checks.tensor_memory import TensorMemoryOrder
from tilewright.sim.checks.tokens import Tokens
from tilewright.sim.checks.uninitialised import Uninitialised

# In the order in which they are notified of an event. Classes of one name are chosen together.
CHECKERS: tuple[type[Checker], ...] = (
    Races,
    Uninitialised,
    Proxies,
    GlobalProxies,
    RegistersInFlight,
    TensorMemoryOrder,
    MbarrierRules,
    Tokens,
    Exits,
    Divergence,
    Bounds,
    Residency,
    Dependents,
    EarlyLaunches,
    Arithmetic,
    Architectures,
    Performance,
)

SETS = ("none", "default", "all")


def enabled_checkers(check: str) -> dict[str, bool]:
    """The checkers that ``check`` names, and whether each is to be thorough.

    ``check`` is words with commas between them: ``none``, ``default``, ``all``, names of checkers, or ``-name`` to
    leave one out.

    >>> enabled_checkers("races"), enabled_checkers("none"), "arithmetic" in enabled_checkers("default")
    ({'races': True}, {}, False)
    """
    names = list(dict.fromkeys(checker.name for checker in CHECKERS))
    found: dict[str, bool] = {}
    for word in (word.strip() for word in str(check).split(",")):
        if word == "all":
            found |= dict.fromkeys(names, True)
        elif word == "default":
            found |= {c.name: found.get(c.name, False) for c in CHECKERS if c.cost == "default"}
        elif word in names:
            found[word] = True
        elif word.removeprefix("-") in names:
            found.pop(word.removeprefix("-"), None)
        elif word not in ("none", ""):
            known = (*SETS, *names)
            raise ArgumentError(f"check={check!r}: there are {', '.join(known)}{nearest(word, known)}")
    return found
