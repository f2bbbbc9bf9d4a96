"""Tensor maps in memory: prefetched, copied there, changed field by field, and fenced (PTX ISA, "tensormap.replace",
"membar/fence", "prefetch").

TMA reads tensor maps through a proxy of its own. One that a kernel has written is used in this order: write or replace,
release (``FenceTensorMapRelease``, or ``CopyTensorMapRelease`` from shared memory), synchronise, acquire
(``FenceTensorMapAcquire``) by the warp that copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tilewright.atoms.tma import check_map, map_address
from tilewright.atoms.tma_engine import words_of
from tilewright.errors import ConstraintError
from tilewright.ir import tensormap as image
from tilewright.ir.core import Op, Value
from tilewright.ir.effects import Access, Ordering
from tilewright.ir.instruction import Emitter, Instruction, Lanes
from tilewright.ir.target import SPECIFIC, WARP
from tilewright.ir.types import U32, U64, MemSpace, PtrType, Type, element_of

_MEMORY = (MemSpace.GMEM, MemSpace.SMEM, MemSpace.GENERIC)


class Field(NamedTuple):
    """A field that can be set: its type, its first word in the simulator's image, and how many there are."""

    kind: Type
    word: int
    places: int


FIELDS = {
    "global_address": Field(U64, image.ADDRESS, 1),
    "global_dim": Field(U32, image.DIMS, image.RANK),
    "global_stride": Field(U64, image.STRIDES, image.RANK - 1),
}
_RULES = {
    "global_address": "is not an address that TMA takes: tensors begin at a multiple of 16 bytes",
    "global_stride": "bytes are not a stride that TMA takes: modes have strides of multiples of 16 bytes",
}
"""What a value that is not a multiple of 16 is told, after the value."""


@dataclass(frozen=True)
class PrefetchTensorMap(Instruction):
    """``prefetch.tensormap``: bring a tensor map near, so that the first copy by it need not wait."""

    name: ClassVar[str] = "prefetch.tensormap"
    min_arch: int = 90
    accesses = ()

    def verify(self, op: Op) -> None:
        check_map(self.name, op.operands[0], _at(op))

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        address = map_address(out, op.operands[0])
        out.line(f'asm volatile("prefetch.tensormap [%0];" :: "l"({address}) : "memory");')


@dataclass(frozen=True)
class CopyTensorMap(Instruction):
    """A tensor map to 128 bytes of memory, by each thread that is here. Operands: destination, tensor map."""

    name: ClassVar[str] = "tensormap.copy"
    min_arch: int = 90
    accesses = (Access("write", "destination", _MEMORY, 0, bits=128, align=64),)

    def verify(self, op: Op) -> None:
        _check_memory(self.name, op, op.operands[0])
        check_map(self.name, op.operands[1], _at(op))

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        words = words_of(lanes, operands[1], op.operands[1].type)
        _write(lanes, op, operands[0], words)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        target, source = out.value(op.operands[0]), map_address(out, op.operands[1])
        out.helper("copy_tensor_map", _COPY)
        out.line(f"copy_tensor_map({target}, {source});")


_COPY = """__device__ __forceinline__ void copy_tensor_map(void* target, void const* source) {
#pragma unroll
  for (int i = 0; i < 8; ++i) static_cast<uint4*>(target)[i] = static_cast<uint4 const*>(source)[i];
}
"""


@dataclass(frozen=True)
class ReplaceTensorMap(Instruction):
    """``tensormap.replace.tile``: set one field of a tensor map in shared or global memory. Operands: pointer, value.

    ``ordinal`` counts the modes (``global_dim``: elements) and their strides (``global_stride``: bytes, from mode 1
    on).
    """

    field: str
    ordinal: int = 0
    name: ClassVar[str] = "tensormap.replace"
    min_arch: int = 90
    features: ClassVar[tuple[int, ...]] = SPECIFIC
    accesses = (Access("write", "tensor map", _MEMORY, 0, align=64),)

    def __post_init__(self) -> None:
        if self.field not in FIELDS or not 0 <= self.ordinal < FIELDS[self.field].places:
            raise ConstraintError(f"tensormap.replace: there is no {self.field} {self.ordinal}")

    def mnemonic(self) -> str:
        return f"{self.name}.{self.field}{f' {self.ordinal}' if FIELDS[self.field].places > 1 else ''}"

    def verify(self, op: Op) -> None:
        _check_memory(self.name, op, op.operands[0])
        required = FIELDS[self.field].kind
        if element_of(op.operands[1].type).width != element_of(required).width:
            raise ConstraintError(f"{self.mnemonic()}: the value is {required}, not {op.operands[1].type}{_at(op)}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        # A write of this field alone: lanes of a warp that replace it by one value agree, in whatever order they come.
        values = lanes.spread(operands[1])
        if self.field in _RULES:
            _need_none(
                lanes, values, values.astype(np.uint64) % 16 != 0, f"{self.mnemonic()}: {{}} {_RULES[self.field]}"
            )
        word = values.view(f"u{values.itemsize}").astype(np.uint64)[:, None]
        _write(lanes, op, lanes.further(operands[0], (FIELDS[self.field].word + self.ordinal) * word.itemsize), word)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        pointer, value = op.operands
        shared = isinstance(pointer.type, PtrType) and pointer.type.space is MemSpace.SMEM
        wide = element_of(FIELDS[self.field].kind).width == 64
        space = "shared::cta" if shared else "global"
        ordinal = f", {self.ordinal}" if FIELDS[self.field].places > 1 else ""
        text = f"tensormap.replace.tile.{self.field}.{space}.b1024.{'b64' if wide else 'b32'} [%0]{ordinal}, %1;"
        address = f'"r"({out.shared_address(pointer)})' if shared else f'"l"({out.value(pointer)})'
        kind = "l" if wide else "r"
        out.line(f'asm volatile("{text}" :: {address}, "{kind}"({out.value(value)}) : "memory");')


@dataclass(frozen=True)
class CheckContiguous(Instruction):
    """Nothing on a GPU. In the simulator: the mode ``where`` of a tensor, for which tensor maps have no stride, has the
    stride 1 or one element. Operands: the stride in elements, the extent."""

    where: str
    name: ClassVar[str] = "tensormap.contiguous"
    accesses = ()

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        stride, extent = map(lanes.spread, operands)
        text = f"{self.where} has the stride {{}}, and TMA brings elements that follow each other there"
        fix = "pass a tensor that is contiguous in that mode, or choose an atom made for the mode that is"
        _need_none(lanes, stride, (stride != 1) & (extent > 1), text, fix)
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        return


@dataclass(frozen=True)
class FenceTensorMapRelease(Instruction):
    """``fence.proxy.tensormap::generic.release.gpu``: tensor maps that this thread has written can be acquired."""

    name: ClassVar[str] = "fence.proxy.tensormap.release"
    min_arch: int = 90
    accesses = ()
    orders = (Ordering("gpu", release=True, proxies=("generic", "tensormap")),)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        out.line('asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");')


@dataclass(frozen=True)
class FenceTensorMapAcquire(Instruction):
    """``fence.proxy.tensormap::generic.acquire.gpu``: TMA reads the 128 bytes at the operand again."""

    name: ClassVar[str] = "fence.proxy.tensormap.acquire"
    min_arch: int = 90
    accesses = ()
    orders = (Ordering("gpu", acquire=True, proxies=("generic", "tensormap")),)

    def verify(self, op: Op) -> None:
        _check_memory(self.name, op, op.operands[0], (MemSpace.GMEM, MemSpace.GENERIC))

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        address = out.value(op.operands[0])
        text = "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
        out.line(f'asm volatile("{text}" :: "l"({address}) : "memory");')


@dataclass(frozen=True)
class CopyTensorMapRelease(Instruction):
    """``tensormap.cp_fenceproxy``: a whole warp copies a tensor map from shared to global memory and releases it.
    Operands: destination, source."""

    name: ClassVar[str] = "tensormap.cp_fenceproxy"
    min_arch: int = 90
    accesses = (
        Access("write", "destination", (MemSpace.GMEM, MemSpace.GENERIC), 0, align=128),
        Access("read", "source", (MemSpace.SMEM,), 1, align=128),
    )
    orders = (Ordering("gpu", release=True, proxies=("generic", "tensormap")),)

    def verify(self, op: Op) -> None:
        _check_memory(self.name, op, op.operands[0], (MemSpace.GMEM, MemSpace.GENERIC), 128)
        _check_memory(self.name, op, op.operands[1], (MemSpace.SMEM,), 128)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active = lanes.active().reshape(-1, WARP)
        torn = active.any(axis=1) & ~active.all(axis=1)
        if torn.any():
            raise lanes.fault(
                f"{self.name} by some threads of a warp only",
                np.repeat(torn, WARP),
                "let the whole warp call cp_fence_tma_desc_release",
            )
        _write(lanes, op, operands[0], words_of(lanes, operands[1], op.operands[1].type))
        return ()

    def emit(self, out: Emitter, op: Op) -> None:
        target, source = out.value(op.operands[0]), out.shared_address(op.operands[1])
        text = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
        out.line(f'asm volatile("{text}" :: "l"({target}), "r"({source}) : "memory");')


def _write(lanes: Lanes, op: Op, pointer: Any, words: Any) -> None:
    elem = element_of(op.operands[0].type)
    lanes.store(pointer, np.ascontiguousarray(words).view(elem.dtype))


def _need_none(lanes: Lanes, values: Any, wrong: Any, text: str, fix: str = "") -> None:
    """A fault where the value of an active lane is ``wrong`` (bool ``[L]``); ``text`` has the first such value in the
    place of ``{}``."""
    wrong = wrong & lanes.active()
    if wrong.any():
        raise lanes.fault(text.format(int(values[wrong][0])), wrong, fix)


def _check_memory(what: str, op: Op, value: Value, spaces: tuple[MemSpace, ...] = _MEMORY, align: int = 64) -> None:
    kind = value.type
    if not isinstance(kind, PtrType) or kind.space not in spaces:
        names = " or ".join(s.value for s in spaces)
        raise ConstraintError(f"{what}: a tensor map must be in {names}, not at {kind}{_at(op)}")
    if kind.align % align:
        raise ConstraintError(
            f"{what}: a tensor map in memory is 128 bytes aligned to {align}; the pointer is only known to be a "
            f"multiple of {kind.align}: allocate it with byte_alignment=128, or state assumed_align=128{_at(op)}"
        )


def _at(op: Op) -> str:
    return f" at {op.loc}" if op.loc else ""
