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
        found: type[Checker] = getattr(import_module(module), name)
        return found


def every_kernel(known: KernelFacts) -> bool:
    return True


def _uninitialised(known: KernelFacts) -> bool:
    return known.may_read_unwritten or any_marked()


def _proxies(known: KernelFacts) -> bool:
    return any(
        access.proxy == "async" and any(space in SHARED_SPACES for space in access.memories)
        for op in known.calls
        for access in op.attrs["atom"].accesses
    )


def _registers_in_flight(known: KernelFacts) -> bool:
    return any(op.attrs["atom"].in_flight for op in known.calls)


def _mbarriers(known: KernelFacts) -> bool:
    return known.mbarriers or any(op.attrs["atom"].name.startswith("mbarrier") for op in known.calls)


def _divergence(known: KernelFacts) -> bool:
    return any(o.through in ("barrier", "warp") for op in known.calls for o in op.attrs["atom"].orders)


def _global_proxies(known: KernelFacts) -> bool:
    return bool(known.by_threads and known.by_async_proxy)


def _tensor_memory(known: KernelFacts) -> bool:
    return known.tensor_memory


def _tokens(known: KernelFacts) -> bool:
    return bool(known.guarded_waits)


def _exits(known: KernelFacts) -> bool:
    return known.remote


def _bounds(known: KernelFacts) -> bool:
    return bool(known.within)


def _descriptors(known: KernelFacts) -> bool:
    return bool(known.descriptors)


def _residency(known: KernelFacts) -> bool:
    return bool(known.polling_reads)


def _dependents(known: KernelFacts) -> bool:
    return any_running()


def _early_launches(known: KernelFacts) -> bool:
    return bool(known.early_launches)


def _arithmetic(known: KernelFacts) -> bool:
    return bool(known.arithmetic)


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
    found: dict[str, bool] = {}
    for word in (word.strip() for word in str(check).split(",")):
        if word == "all":
            found |= dict.fromkeys(names, True)
        elif word == "default":
            found |= {row.name: found.get(row.name, False) for row in CHECKERS if row.cost == "default"}
        elif word in names:
            found[word] = True
        elif word.removeprefix("-") in names:
            found.pop(word.removeprefix("-"), None)
        elif word not in ("none", ""):
            known = (*SETS, *names)
            raise ArgumentError(f"check={check!r}: there are {', '.join(known)}{nearest(word, known)}")
    return found
