"""``cute.Pointer`` as programs name it: in annotations, and in ``isinstance(tensor.iterator, cute.Pointer)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.lang.tensors import pointer
from tilewright.lang.tensors.registers import Registers

if TYPE_CHECKING:
    from tilewright.lang.tensors.pointer import Pointer as Pointer
else:

    class _Iterators(type):
        """The iterator of a register tensor is a pointer to programs, though it has no address."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, (pointer.Pointer, Registers))

    class Pointer(pointer.Pointer, metaclass=_Iterators):
        __slots__ = ()
        __doc__ = pointer.Pointer.__doc__
