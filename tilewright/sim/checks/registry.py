"""The checkers by name, and which of them a text such as ``"default"`` or ``"races,mbarriers"`` chooses.

A row says which kernels a checker concerns, and where its class is: a class is imported for the first kernel that it
concerns, so that a first small launch does not wait for the checks of instructions that it does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from tilewright.errors import ArgumentError, nearest
from tilewright.ir.passes.written import SHARED_SPACES
from tilewright.sim.checks.running_kernels import any_running
from tilewright.sim.empty_arrays import any_marked

if TYPE_CHECKING:
    from tilewright.sim.checks.checker import Checker
    from tilewright.sim.checks.sites import KernelFacts


class Row(NamedTuple):
    """A checker.

    Attributes:
        name: by which users choose it: ``check="races,mbarriers"``. Rows of one name are chosen together.
        cost: ``"default"`` runs unless the user says otherwise (little cost), ``"all"`` only when asked for.
        place: the module and the name of its class.
        looks_at: what :meth:`concerns` asks.
    """

    name: str
    cost: str
    place: str
    looks_at: Callable[[KernelFacts], bool]

    def concerns(self, facts: KernelFacts) -> bool:
        """Whether the kernel has anything for this checker to look at. A checker of mbarriers costs a kernel without
        them nothing. Invariant: False only where the checker would report nothing in any launch of the kernel."""
        return self.looks_at(facts)

    def checker(self) -> type[Checker]:
        module, _, name = self.place.rpartition(".")
        checker: type[Checker] = getattr(import_module(module), name)
        return checker


def every_kernel(facts: KernelFacts) -> bool:
    return True


def _uninitialised(facts: KernelFacts) -> bool:
    return facts.may_read_unwritten or any_marked()


def _proxies(facts: KernelFacts) -> bool:
    return any(
        access.proxy == "async" and any(space in SHARED_SPACES for space in access.memories)
        for op in facts.calls
        for access in op.attrs["atom"].accesses
    )


def _registers_in_flight(facts: KernelFacts) -> bool:
    return any(op.attrs["atom"].in_flight for op in facts.calls)


def _mbarriers(facts: KernelFacts) -> bool:
    return facts.mbarriers or any(op.attrs["atom"].name.startswith("mbarrier") for op in facts.calls)


def _divergence(facts: KernelFacts) -> bool:
    return any(o.through in ("barrier", "warp") for op in facts.calls for o in op.attrs["atom"].orders)


def _global_proxies(facts: KernelFacts) -> bool:
    return bool(facts.by_threads and facts.by_async_proxy)


def _tensor_memory(facts: KernelFacts) -> bool:
    return facts.tensor_memory


def _tokens(facts: KernelFacts) -> bool:
    return bool(facts.guarded_waits)


def _exits(facts: KernelFacts) -> bool:
    return facts.remote


def _bounds(facts: KernelFacts) -> bool:
    return bool(facts.within)


def _descriptors(facts: KernelFacts) -> bool:
    return bool(facts.descriptors)


def _residency(facts: KernelFacts) -> bool:
    return bool(facts.polling_reads)


def _dependents(facts: KernelFacts) -> bool:
    return any_running()


def _early_launches(facts: KernelFacts) -> bool:
    return bool(facts.early_launches)


def _arithmetic(facts: KernelFacts) -> bool:
    return bool(facts.arithmetic)


_HERE = "tilewright.sim.checks."
# In the order in which they are notified of an event.
CHECKERS: tuple[Row, ...] = (
    Row("races", "default", _HERE + "races.Races", every_kernel),
    Row("uninitialised", "default", _HERE + "uninitialised.Uninitialised", _uninitialised),
    Row("proxies", "default", _HERE + "proxies.Proxies", _proxies),
    Row("proxies", "default", _HERE + "global_proxies.GlobalProxies", _global_proxies),
    Row("wgmma", "default", _HERE + "registers_in_flight.RegistersInFlight", _registers_in_flight),
    Row("tensor-memory", "default", _HERE + "tensor_memory.TensorMemoryOrder", _tensor_memory),
    Row("mbarriers", "default", _HERE + "mbarriers.MbarrierRules", _mbarriers),
    Row("mbarriers", "default", _HERE + "tokens.Tokens", _tokens),
    Row("exits", "default", _HERE + "exits.Exits", _exits),
    Row("divergence", "default", _HERE + "divergence.Divergence", _divergence),
    Row("bounds", "default", _HERE + "bounds.Bounds", _bounds),
    Row("bounds", "default", _HERE + "allocations.Allocations", _descriptors),
    Row("residency", "default", _HERE + "residency.Residency", _residency),
    Row("dependents", "default", _HERE + "dependents.Dependents", _dependents),
    Row("dependents", "default", _HERE + "dependents.EarlyLaunches", _early_launches),
    Row("arithmetic", "all", _HERE + "arithmetic.Arithmetic", _arithmetic),
    Row("architecture", "default", _HERE + "architectures.Architectures", every_kernel),
    Row("performance", "all", _HERE + "performance.Performance", every_kernel),
)

SETS = ("none", "default", "all")


def enabled_checkers(check: str) -> dict[str, bool]:
    """The checkers that ``check`` names, and whether each is to be thorough.

    ``check`` is words with commas between them: ``none``, ``default``, ``all``, names of checkers, or ``-name`` to
    leave one out.

    >>> enabled_checkers("races"), enabled_checkers("none"), "arithmetic" in enabled_checkers("default")
    ({'races': True}, {}, False)
    """
    names = list(dict.fromkeys(row.name for row in CHECKERS))
    enabled: dict[str, bool] = {}
    for word in (word.strip() for word in str(check).split(",")):
        if word == "all":
            enabled |= dict.fromkeys(names, True)
        elif word == "default":
            enabled |= {row.name: enabled.get(row.name, False) for row in CHECKERS if row.cost == "default"}
        elif word in names:
            enabled[word] = True
        elif word.removeprefix("-") in names:
            enabled.pop(word.removeprefix("-"), None)
        elif word not in ("none", ""):
            names_of_rules = (*SETS, *names)
            raise ArgumentError(
                f"check={check!r}: there are {', '.join(names_of_rules)}{nearest(word, names_of_rules)}"
            )
    return enabled
