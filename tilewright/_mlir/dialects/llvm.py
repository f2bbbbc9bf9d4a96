"""``cutlass._mlir.dialects.llvm``: inline PTX, and values as they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright._mlir.dialects import arith
from tilewright._mlir.dialects.arith import bitcast
from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.core import Constant
from tilewright.ir.types import SCALARS, ScalarType, VecType
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.device.inline_ptx import StructType, extractvalue, inline_asm
from tilewright.lang.numbers.numeric import wrap
from tilewright.lang.numbers.numeric_base import class_of
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.select import select

__all__ = [
    "AsmDialect",
    "PointerType",
    "StructType",
    "addrspacecast",
    "bitcast",
    "extractvalue",
    "inline_asm",
    "intr_ctlz",
    "mlir_undef",
    "mlir_zero",
    "ptrtoint",
    "sext",
    "trunc",
    "zext",
]
attach(__name__)
sext, trunc, zext = (getattr(arith, name) for name in ("extsi", "trunci", "extui"))


class AsmDialect(Enum):
    """PTX has one notation; LLVM calls it AT&T's."""

    AD_ATT = 0
    AD_Intel = 1


def mlir_zero(res: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Zeros of a type."""
    if not isinstance(res, (ScalarType, VecType)):
        raise ConstraintError(f"a type of numbers such as T.f32() is needed, not {res!r}")
    zero = Constant(res, 0.0 if (res if isinstance(res, ScalarType) else res.elem).is_float else 0)
    return wrap(zero) if isinstance(res, ScalarType) else zero


mlir_undef = mlir_zero  # what is written before it is read may as well be zero


@dataclass(frozen=True)
class PointerType:
    """The type of a pointer to a memory: the number that PTX gives it, or the value of an ``AddressSpace``.

    >>> PointerType.get(1)
    PointerType(address_space=<AddressSpace.gmem: 'gmem'>)
    """

    address_space: AddressSpace

    @classmethod
    def get(cls, address_space: Any = 0, *, context: Any = None, loc: Any = None) -> PointerType:
        if address_space not in _MEMORIES:
            raise ConstraintError(f"llvm.PointerType.get: no memory has the number {address_space!r}")
        return cls(_MEMORIES[address_space])


_MEMORIES: dict[Any, AddressSpace] = {
    0: AddressSpace.generic,
    1: AddressSpace.gmem,
    3: AddressSpace.smem,
    7: AddressSpace.dsmem,
    **{memory.value: memory for memory in AddressSpace},
}


def addrspacecast(res: Any, arg: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The pointer as one to global memory, where it is generic, or the other way round; both hold one address."""
    pointer = pointer_of(arg, "llvm.addrspacecast")
    space, both = getattr(res, "address_space", res), (AddressSpace.gmem, AddressSpace.generic)
    if space != pointer.memspace and not (space in both and pointer.memspace in both):
        raise ConstraintError(
            f"llvm.addrspacecast: a pointer to {pointer.memspace} cannot become one to {space}: pointers to global "
            "memory become generic ones, and generic ones pointers to global memory"
        )
    return pointer.llvm_ptr


def ptrtoint(res: Any, arg: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The address that a pointer holds, as an integer of a type: in shared memory the 32 bits that PTX takes.

    >>> from tilewright.cutlass_dsl import T
    >>> @cute.jit
    ... def apart(t):
    ...     first = cute.arch.alloc_smem(cute.Int32, 8)
    ...     return ptrtoint(T.i32(), (first + t).llvm_ptr) - ptrtoint(T.i32(), first.llvm_ptr)
    >>> per_thread(apart, 3)
    [0, 4, 8]
    """
    if not isinstance(res, ScalarType) or not res.is_integer:
        raise ConstraintError(f"llvm.ptrtoint: the type of an integer such as T.i64() is needed, not {res!r}")
    return class_of(res)(pointer_of(arg, "llvm.ptrtoint").toint())


def intr_ctlz(in_: Any, is_zero_poison: Any, *, res: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """How many bits above the highest one are 0, as an integer of the operand's type; of 0 all bits, also where
    ``is_zero_poison`` leaves it open.

    The search halves the bits, in shifts and choices: a host function counts them too, where there is no PTX.
    """
    value = arith._value(in_)
    if not (isinstance(value.type, ScalarType) and value.type.is_integer and value.type.width > 1):
        raise ConstraintError(f"llvm.intr_ctlz: an integer is needed, not {value.type}")
    result, width = class_of(value.type), value.type.width
    remaining = wrap(value).to(class_of(SCALARS[f"u{width}"]))
    zeros = result(width)
    for step in (width >> i for i in range(1, width.bit_length())):
        upper = remaining >> step
        zeros = select(upper != 0, result(zeros - step), zeros)
        remaining = select(upper != 0, upper, remaining)
    return zeros - result(remaining)
