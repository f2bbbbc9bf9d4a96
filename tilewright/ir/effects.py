"""The effects of an instruction as data: what it reads, writes and orders.

These are the facts that tools ask an instruction's class for: direction and alignment checks, bank-conflict counts,
spin detection, race checks. ``docs/instructions.md`` explains them with examples.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.types import MemSpace

ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel")
SCOPES = ("thread", "warp", "cta", "cluster", "gpu", "sys")
PROXIES = ("generic", "async", "tensormap")


@dataclass(frozen=True)
class Access:
    """One operand through which an instruction reads (``"read"``), writes (``"write"``) or does both (``"update"``).

    Attributes:
        does: ``read``, ``write`` or ``update`` (read-modify-write: an accumulator, an atomic, an mbarrier).
        role: the operand's name in messages: ``source``, ``destination``, ``mbarrier``...
        spaces: where it may be; ``MemSpace.RMEM`` stands for registers (a fragment).
        operand: the position among the call's operands. Copies, which repeat, say it in ``accessed`` instead.
        bits: contiguous bits that each lane accesses at its own address; 0 where the element type or the instruction
            itself (a TMA box, a wgmma tile) decides.
        align: bytes that the address must be a multiple of; left out, the access's own width.
        lanes: how many lanes of each warp give an address. With ``bits`` it determines the conflict phases.
        agent: who does it: ``""`` the thread itself, in program order, or the asynchronous agent (``"cp.async"``,
            ``"wgmma"``, ``"tma"``) to which the instruction hands it. Such an access is over when an ``Ordering`` of
            this agent says so.
        proxy: ``generic``, ``async`` or ``tensormap`` (PTX ISA, "Proxies"); other proxies see it after a proxy fence.
        order, scope: the memory order (PTX ISA, "Memory Consistency Model") and, unless ``weak``, its scope.

    >>> Access("read", "source", (MemSpace.SMEM,), bits=128, lanes=8).align
    16
    """

    does: str
    role: str
    spaces: tuple[MemSpace, ...]
    operand: int = 0
    bits: int = 0
    align: int = 0
    lanes: int = 32
    agent: str = ""
    proxy: str = "generic"
    order: str = "weak"
    scope: str = ""

    def __post_init__(self) -> None:
        _known("access", self.does, ("read", "write", "update"))
        _known("memory order", self.order, ORDERS)
        _known("proxy", self.proxy, PROXIES)
        if self.order != "weak":
            _known("scope", self.scope, SCOPES)
        if not self.align:
            object.__setattr__(self, "align", max(1, self.bits // 8))

    @property
    def reads(self) -> bool:
        return self.does != "write"

    @property
    def writes(self) -> bool:
        return self.does != "read"

    @property
    def memories(self) -> tuple[MemSpace, ...]:
        """``spaces`` without registers."""
        return tuple(space for space in self.spaces if space is not MemSpace.RMEM)

    @property
    def registers(self) -> bool:
        """Whether the operand may be registers."""
        return MemSpace.RMEM in self.spaces


@dataclass(frozen=True)
class Ordering:
    """What an instruction orders between threads, proxies or asynchronous agents, beside its accesses' own order.

    Attributes:
        scope: who is ordered: ``thread``, ``warp``, ``cta``, ``cluster``, ``gpu``, ``sys``.
        acquire: what others released before is visible to what this thread does after it.
        release: what this thread did before it is visible to those who acquire.
        through: where the two sides meet: ``""`` a fence (any later synchronisation carries it), ``warp``, ``barrier``
            (``bar``), ``cluster barrier``, ``mbarrier``, or ``group`` (commit releases, wait acquires).
        agent: the asynchronous agent whose accesses are ordered, instead of the thread's own.
        proxies: the proxies whose accesses are ordered with each other.
        where_true: it holds for the lanes whose result is true only (``mbarrier.try_wait``).
    """

    scope: str
    acquire: bool = False
    release: bool = False
    through: str = ""
    agent: str = ""
    proxies: tuple[str, ...] = ("generic",)
    where_true: bool = False

    def __post_init__(self) -> None:
        _known("scope", self.scope, SCOPES)
        for proxy in self.proxies:
            _known("proxy", proxy, PROXIES)
        _known("meeting place", self.through, ("", "warp", "barrier", "cluster barrier", "mbarrier", "group"))


def _known(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"no {what} {value!r}; it is one of {', '.join(map(repr, allowed))}")
