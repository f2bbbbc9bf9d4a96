"""Statements of inline PTX that reach memory, or at which threads meet, as the operations of ``cute.arch``: what the
simulator and its checks know of these holds for the statements too.

A statement is followed if its address was made from a pointer of the program and nothing of it would be lost;
:func:`follows` says so. Others stay PTX (PTX ISA, "Memory Consistency Model", "ld", "st", "atom", "red", "bar").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewright.atoms.cp_async import CpAsync, LoadCacheMode
from tilewright.atoms.mbarrier import MbarrierArrive, MbarrierExpectTx, MbarrierTest
from tilewright.atoms.ptx.text import Operand, Statement, parts
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    ScalarType,
)
from tilewright.lang.device import atomic, barriers, bulk, clusters, mbarriers, ptx_bulk, ptx_matrix, registers
from tilewright.lang.device.calls import call
from tilewright.lang.device.ptx_registers import PtxRegisters
from tilewright.lang.numbers.numeric import wrap
from tilewright.lang.tensors.pointer import Pointer

KINDS: dict[str, ScalarType] = {
    **{"b8": U8, "u8": U8, "s8": I8, "b16": U16, "u16": U16, "s16": I16, "b32": U32, "u32": U32, "s32": I32},
    **{"b64": U64, "u64": U64, "s64": I64, "f16": F16, "bf16": BF16, "f32": F32, "f64": F64},
}
SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel")
_ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_HINT = re.compile(r"nc|c[agsv]|wb|wt|L[12]::(?!cache_hint)\w+")
"""Which caches hold the line; with ``L2::cache_hint`` a statement has another operand."""


@dataclass(frozen=True)
class MemoryOpcode:
    """``ld.acquire.gpu.global.v2.u32`` and its like: ld, st, atom or red.

    >>> MemoryOpcode.read("ld.global.acquire.gpu.b32")  # doctest: +NORMALIZE_WHITESPACE
    MemoryOpcode(name='ld', kind=u32, order='acquire', scope='gpu', space='global', operation=None, count=1)
    >>> MemoryOpcode.read("red.global.add.v4.f32").count, MemoryOpcode.read("ld.global.L2::cache_hint.u32")
    (4, None)
    """

    name: str
    kind: ScalarType
    order: str | None = None
    scope: str | None = None
    space: str | None = None
    operation: str | None = None
    count: int = 1

    @classmethod
    def read(cls, opcode: str) -> MemoryOpcode | None:
        """None for other opcodes, and where a part of it has no counterpart."""
        name, *parts = opcode.split(".")
        if name not in ("ld", "st", "atom", "red") or not parts or parts[-1] not in KINDS | dict.fromkeys(_ATOMICS):
            return None
        made = cls(name, U32)
        for part in parts:
            if part == "volatile":
                made = replace(made, order="relaxed", scope="sys")
            elif part in ("v2", "v4", "v8"):
                made = replace(made, count=int(part[1]))
            elif part in KINDS:
                made = replace(made, kind=KINDS[part])
            elif part in _ORDERS or part in _SCOPES or part in SPACES or part in _ATOMICS:
                choices = {"order": _ORDERS, "scope": _SCOPES, "space": SPACES, "operation": _ATOMICS}
                field = next(field for field, words in choices.items() if part in words)
                named: dict[str, Any] = {field: part}
                made = replace(made, **named)
            elif part == "cv" and name == "ld":  # what others wrote meanwhile
                made = replace(made, order="relaxed", scope="sys")
            elif not (_HINT.fullmatch(part) if name in ("ld", "st") else part == "noftz"):
                return None
        return made if made._sound() else None

    def _sound(self) -> bool:
        if self.name in ("ld", "st"):  # ordered ones are of 32 or 64 bits
            narrow = self.kind.width < 32 and self.order not in (None, "weak")
            return self.operation is None and not narrow
        return self.operation is not None and (self.name == "atom" or self.operation not in ("exch", "cas"))

    @property
    def is_weak(self) -> bool:
        return self.order in (None, "weak")

    @property
    def address(self) -> int:
        """Which operand it is."""
        return int(self.name in ("ld", "atom"))

    def fits(self, operands: tuple[Operand, ...], regs: PtxRegisters) -> bool:
        """Whether there are the operands of such a statement, and as many parts of each as it says."""
        numbers = {"ld": 1, "st": 1, "atom": 2, "red": 1}[self.name] + (self.operation == "cas")
        if len(operands) != 1 + numbers:
            return False
        values = [parts(o) for i, o in enumerate(operands) if i != self.address]
        targets, sources = (values[0], values[1:]) if self.address else ((), values)
        if not all(regs.is_number(part, self.kind) for value in sources for part in value):
            return False
        return all(len(v) == self.count for v in values) and all(map(regs.declares, targets))

    def emit(self, regs: PtxRegisters, operands: tuple[Operand, ...]) -> None:
        bytes_ = self.kind.width // 8
        align = bytes_ * (self.count if self.name in ("ld", "st") and self.is_weak else 1)
        place = regs.place(operands[self.address], self.kind, self.space, align)
        if self.name == "ld":
            for name, value in zip(parts(operands[0]), self._loaded(place), strict=True):
                regs.write(name, value)
        elif self.name == "st":
            self._store(place, [regs.number(o, self.kind) for o in parts(operands[1])])
        else:
            self._update(regs, place, operands)

    def _loaded(self, place: Pointer) -> list[Value]:
        builder = Builder.current()
        if not self.is_weak:
            loads = [atomic.load(place + i, sem=self.order, scope=self.scope) for i in range(self.count)]
            return [x.ir_value() for x in loads]
        if self.count == 1:
            return [builder.load(place.value())]
        vector = builder.load(place.value(), self.count)
        return [builder.extract(vector, i) for i in range(self.count)]

    def _store(self, place: Pointer, numbers: list[Value]) -> None:
        builder = Builder.current()
        if self.is_weak:
            builder.store(place.value(), numbers[0] if self.count == 1 else builder.build(numbers))
            return
        for i, number in enumerate(numbers):
            atomic.store(place + i, wrap(number), sem=self.order, scope=self.scope)

    def _update(self, regs: PtxRegisters, place: Pointer, operands: tuple[Operand, ...]) -> None:
        assert self.operation is not None
        values = [[wrap(regs.number(o, self.kind)) for o in parts(x)] for x in operands[self.address + 1 :]]
        compare = values[0] if len(values) == 2 else [None] * self.count
        targets = parts(operands[0]) if self.name == "atom" else ("_",) * self.count
        for i, target in enumerate(targets):
            old = atomic.update(self.operation, place + i, values[-1][i], compare[i], sem=self.order, scope=self.scope)
            regs.write(target, old.ir_value())


# -- where threads meet, and what orders memory ------------------------------------------------------------------------

_ALONE: dict[str, Callable[[], Any]] = {
    **{f"fence.acq_rel.{scope}": getattr(barriers, f"fence_acq_rel_{scope}") for scope in _SCOPES},
    **{f"fence.sc.{scope}": lambda scope=scope: barriers.threadfence(scope) for scope in ("cta", "gpu", "sys")},  # type: ignore[misc]  # the default binds the scope
    "membar.cta": lambda: barriers.threadfence("cta"),
    "membar.gl": barriers.threadfence,
    "membar.sys": lambda: barriers.threadfence("sys"),
    "fence.mbarrier_init.release.cluster": mbarriers.mbarrier_init_fence,
    "fence.proxy.async": lambda: barriers.fence_proxy("async"),
    "fence.proxy.async.shared::cta": lambda: barriers.fence_proxy("async.shared", space="cta"),
    "fence.proxy.async.shared::cluster": lambda: barriers.fence_proxy("async.shared", space="cluster"),
    "fence.proxy.async.global": lambda: barriers.fence_proxy("async.global"),
    "griddepcontrol.wait": registers.griddepcontrol_wait,
    "griddepcontrol.launch_dependents": registers.griddepcontrol_launch_dependents,
    "cp.async.commit_group": barriers.cp_async_commit_group,
    "cp.async.wait_all": lambda: barriers.cp_async_wait_group(0),
    "cp.async.bulk.commit_group": bulk.cp_async_bulk_commit_group,
    "barrier.cluster.arrive": lambda: clusters.cluster_arrive(aligned=False),
    "barrier.cluster.arrive.release": lambda: clusters.cluster_arrive(aligned=False),
    "barrier.cluster.arrive.relaxed": lambda: clusters.cluster_arrive_relaxed(aligned=False),
    "barrier.cluster.wait": lambda: clusters.cluster_wait(aligned=False),
    "barrier.cluster.wait.acquire": lambda: clusters.cluster_wait(aligned=False),
    "barrier.cluster.arrive.aligned": clusters.cluster_arrive,
    "barrier.cluster.arrive.release.aligned": clusters.cluster_arrive,
    "barrier.cluster.arrive.relaxed.aligned": clusters.cluster_arrive_relaxed,
    "barrier.cluster.wait.aligned": clusters.cluster_wait,
    "barrier.cluster.wait.acquire.aligned": clusters.cluster_wait,
}
"""Statements without operands."""
_COUNTS: dict[str, Callable[[int], Any]] = {
    "cp.async.wait_group": barriers.cp_async_wait_group,
    "cp.async.bulk.wait_group": bulk.cp_async_bulk_wait_group,
    "cp.async.bulk.wait_group.read": lambda n: bulk.cp_async_bulk_wait_group(n, read=True),
    "setmaxnreg.inc.sync.aligned.u32": registers.setmaxregister_increase,
    "setmaxnreg.dec.sync.aligned.u32": registers.setmaxregister_decrease,
}
"""Statements whose operand is a number in the text."""
_BARRIER = re.compile(r"(bar|barrier)(?:\.cta)?\.(sync|arrive)(\.aligned)?")
_MBARRIER = re.compile(
    r"mbarrier\.(init|arrive|expect_tx|arrive\.expect_tx|(?:try|test)_wait\.parity)"
    r"(?:\.(release|acquire|relaxed)(?:\.(cta|cluster))?)?(?:\.shared(?:::cta|::cluster)?)?\.b64"
)
_NOINC = re.compile(r"cp\.async\.mbarrier\.arrive\.noinc(?:\.shared(?:::cta)?)?\.b64")


def follows(statement: Statement, regs: PtxRegisters) -> bool | None:
    """Whether the statement can be emitted as an operation; None for one that is not of this kind."""
    opcode, operands = statement.opcode, statement.operands
    if (memory := MemoryOpcode.read(opcode)) is not None:
        return memory.fits(operands, regs) and regs.reaches(operands[memory.address], memory.space)
    if opcode in _ALONE or opcode == "bar.warp.sync" or _BARRIER.fullmatch(opcode):
        return True
    if opcode in _COUNTS:
        return str(operands[0]).isdigit()
    if (match := _MBARRIER.fullmatch(opcode)) is not None:
        state = match[1].startswith("arrive")  # which the operation does not give
        at = int(state or "wait" in match[1])
        count = operands[2:] if match[1] == "arrive" else ()
        if state and operands[0] != "_" or not all(str(o).isdigit() for o in count):
            return False
        declared = "wait" not in match[1] or regs.declares(parts(operands[0])[0], predicate=True)
        return declared and regs.shared_place(operands[at]) is not None
    if _NOINC.fullmatch(opcode):
        return regs.shared_place(operands[0]) is not None
    if opcode.startswith(("cp.async.bulk.", "cp.reduce.async.bulk.")):
        return ptx_bulk.follows(statement, regs)
    if ptx_matrix.is_matrix(opcode):
        return ptx_matrix.follows(statement, regs)
    if opcode.startswith(("cp.async.ca.", "cp.async.cg.")):
        return _cp_async(statement, regs) is not None
    return False if opcode.split(".")[0] in ("ld", "st", "atom", "red", "bar", "barrier", "mbarrier") else None


def emit(statement: Statement, regs: PtxRegisters) -> None:
    """Emit a statement that is followed; its guard is the caller's."""
    opcode, operands = statement.opcode, statement.operands
    if (memory := MemoryOpcode.read(opcode)) is not None:
        memory.emit(regs, operands)
    elif opcode in _ALONE:
        _ALONE[opcode]()
    elif opcode in _COUNTS:
        _COUNTS[opcode](int(str(operands[0])))
    elif opcode == "bar.warp.sync":
        barriers.sync_warp(wrap(regs.number(operands[0], U32)))
    elif (barrier := _BARRIER.fullmatch(opcode)) is not None:
        named = [wrap(regs.number(o, I32)) for o in operands]
        meet = barriers.barrier if barrier[2] == "sync" else barriers.barrier_arrive
        of, threads = (*named, None)[:2]
        meet(barrier_id=of, number_of_threads=threads, aligned=barrier[1] == "bar" or barrier[3] is not None)
    elif (match := _MBARRIER.fullmatch(opcode)) is not None:
        _at_mbarrier(match[1], match[2], match[3], regs, operands)
    elif _NOINC.fullmatch(opcode):
        made = regs.shared_place(operands[0])
        assert made is not None
        mbarriers.cp_async_mbarrier_arrive_noinc(made[0])
    elif ptx_matrix.is_matrix(opcode):
        ptx_matrix.emit(statement, regs)
    elif (copy := _cp_async(statement, regs)) is not None:
        target, source = (regs.place(operands[i], U32, ("shared", "global")[i], copy.bits // 8) for i in range(2))
        Builder.current().call(copy, [source.value(), target.value()], count=1, predicated=False)
    else:
        ptx_bulk.emit(statement, regs)


_CP_ASYNC = re.compile(r"cp\.async\.(ca|cg)\.shared(?:::cta)?\.global(?:\.L2::(?:64|128|256)B)?")


def _cp_async(statement: Statement, regs: PtxRegisters) -> CpAsync | None:
    """The copy; None where it is not followed: with a size of the source that is less, zeros are filled in."""
    match, operands = _CP_ASYNC.fullmatch(statement.opcode), statement.operands
    if match is None or len(operands) not in (3, 4):
        return None
    sizes = [regs.constant(o) for o in operands[2:]]
    in_reach = regs.reaches(operands[0], "shared::cta") and regs.reaches(operands[1], "global")
    if not in_reach or sizes[0] not in (4, 8, 16) or sizes[-1] != sizes[0] or match[1] == "cg" and sizes[0] != 16:
        return None
    return CpAsync(8 * sizes[0], LoadCacheMode(match[1]))


def _at_mbarrier(
    what: str, order: str | None, scope: str | None, regs: PtxRegisters, operands: tuple[Operand, ...]
) -> None:
    before = int(what.startswith("arrive") or "wait" in what)
    made = regs.shared_place(operands[before])
    assert made is not None
    place, rank = made[0], [] if made[1] is None else [Builder.current().cast(made[1], I32)]
    if what == "arrive":
        counts = (int(str(o)) for o in operands[2:])
        call(MbarrierArrive(next(counts, 1), bool(rank), order or "release", scope), place, *rank)
        return
    number = regs.number(operands[before + 1], I32)
    if "wait" in what:
        limit = [regs.number(o, I32) for o in operands[3:]]
        atom = MbarrierTest(what.startswith("try"), order or "acquire", scope, bool(limit))
        (done,) = call(atom, place, number, *limit, results=(BOOL,))
        regs.write(parts(operands[0])[0], done)
    elif what == "init":
        mbarriers.mbarrier_init(place, wrap(number))
    elif what == "expect_tx":
        call(MbarrierExpectTx(False, bool(rank), scope=scope), place, number, *rank)
    else:
        call(MbarrierExpectTx(True, bool(rank), order or "release", scope), place, number, *rank)
