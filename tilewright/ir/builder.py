"""The builder: appends ops at an insertion point, folds what is constant, and stamps each op with the user's line."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.errors import ConstraintError, StagingError
from tilewright.ir import fold
from tilewright.ir.arithmetic import may_overflow
from tilewright.ir.core import Block, Constant, Location, Op, Value, Variable
from tilewright.ir.types import (
    BOOL,
    I32,
    WIDE,
    FragType,
    MemSpace,
    PtrType,
    ScalarType,
    Type,
    VecType,
    element_of,
    with_element,
)

Index = Value | int


class _Stack(threading.local):
    """The active builders of one thread, innermost last."""

    def __init__(self) -> None:
        self.builders: list[Builder] = []


class Builder:
    """Builds one function. ``loc`` is set by the language front before it calls; ``block`` is where ops go.

    Of a kernel, ``block_shape`` is the shape of its thread blocks where the launch states it, and ``smem_bytes`` the
    shared memory that is allocated so far, with the (start, end) of the ``smem_gaps`` in it; ``regions`` are the open
    run-time regions of the language, outermost first. ``recording``: functions that run now describe steps
    in place of emitting ops, so Python iterates over known ranges.

    >>> from tilewright.ir.types import I32
    >>> b = Builder(Block([Value(I32, "n")]))
    >>> two_n = b.binary("mul", b.block.args[0], Constant(I32, 2))
    >>> [op.opcode for op in b.block.ops]
    ['mul']
    """

    _stack: _Stack

    def __init__(self, block: Block) -> None:
        self.block = block
        self.loc: Location | None = None
        self.block_shape: tuple[int | None, ...] | None = None
        self.smem_bytes = 0
        self.smem_gaps: list[tuple[int, int]] = []
        self.regions: list[Any] = []
        self.recording = False
        self.ptx_registers: dict[str, Any] = {}  # that inline PTX declares for the whole function
        self.variables: list[Variable] = []  # of the user's, as they are assigned
        self.swizzled: dict[Any, Any] = {}  # offsets under swizzles, by block and offset: `lang.tensors.swizzled`

    # -- where ---------------------------------------------------------------------------------------------------

    @classmethod
    def current(cls) -> Builder:
        """The builder of the function that is being staged."""
        if not cls._stack.builders:
            raise StagingError("run-time values exist only inside functions marked @cute.jit or @cute.kernel")
        return cls._stack.builders[-1]

    @classmethod
    def active(cls) -> bool:
        return bool(cls._stack.builders)

    @contextlib.contextmanager
    def activate(self) -> Iterator[Builder]:
        self._stack.builders.append(self)
        try:
            yield self
        finally:
            self._stack.builders.pop()

    def checkpoint(self) -> dict[str, Any]:
        """What is known so far beside the ops, for :meth:`go_back`."""
        return {
            "smem_bytes": self.smem_bytes,
            "smem_gaps": [*self.smem_gaps],
            "ptx_registers": {**self.ptx_registers},
            "variables": len(self.variables),
        }

    def go_back(self, to: dict[str, Any]) -> None:
        """Forget what became known since this checkpoint: what was staged since then is not part of the function."""
        self.smem_bytes, self.smem_gaps = to["smem_bytes"], [*to["smem_gaps"]]
        self.ptx_registers = {**to["ptx_registers"]}
        del self.variables[to["variables"] :]

    @contextlib.contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to ``block`` (a region being built) for the duration."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    def emit(
        self,
        opcode: str,
        operands: Sequence[Value] = (),
        results: Sequence[Type] = (),
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        hint: str | None = None,
    ) -> Op:
        """Append one op. Nothing is folded here."""
        op = Op(opcode, list(operands), [], attrs or {}, list(regions), self.loc)
        op.results = [Value(t, hint, op) for t in results]
        self.block.ops.append(op)
        return op

    # -- numbers -------------------------------------------------------------------------------------------------

    @staticmethod
    def constant(type_: Type, value: int | float | bool) -> Constant:
        return Constant(type_, fold.normalise(element_of(type_), value))

    def index(self, value: Index) -> Value:
        return Constant(I32, value) if isinstance(value, int) else value

    def binary(self, opcode: str, a: Value, b: Value, fits: bool = False) -> Value:
        """An elementwise op of :data:`tilewright.ir.arithmetic.TABLE` with two operands of one type."""
        attrs = {} if fits or not _wraps(opcode, a, b) else {"wraps": True}
        return fold.binary(opcode, a, b) or self.emit(opcode, (a, b), (a.type,), attrs).result

    def compare(self, opcode: str, a: Value, b: Value) -> Value:
        return fold.compare(opcode, a, b) or self.emit(opcode, (a, b), (with_element(a.type, BOOL),)).result

    def unary(self, opcode: str, a: Value, fits: bool = False, **attrs: Any) -> Value:
        """An elementwise op with one operand; ``fits``: it is known not to be the least number of its type."""
        if not fits and may_overflow(opcode, element_of(a.type)):
            attrs["wraps"] = True
        return fold.unary(opcode, a) or self.emit(opcode, (a,), (a.type,), attrs).result

    def predicate(self, opcode: str, a: Value) -> Value:
        return self.emit(opcode, (a,), (with_element(a.type, BOOL),)).result

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        if isinstance(cond, Constant):
            return a if cond.value else b
        return a if a is b else self.emit("select", (cond, a, b), (a.type,)).result

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        attrs = {"wraps": True} if may_overflow("fma", element_of(a.type)) else {}
        return self.emit("fma", (a, b, c), (a.type,), attrs).result

    def cast(self, a: Value, elem: ScalarType) -> Value:
        """Convert the number(s) to ``elem``; no op if they have that type."""
        if element_of(a.type) == elem:
            return a
        return fold.cast(a, elem) or self.emit("cast", (a,), (with_element(a.type, elem),)).result

    def bitcast(self, a: Value, to: Type) -> Value:
        return a if a.type == to else self.emit("bitcast", (a,), (to,)).result

    # -- vectors -------------------------------------------------------------------------------------------------

    def build(self, elements: Sequence[Value]) -> Value:
        return self.emit("vec.build", elements, (VecType(element_of(elements[0].type), len(elements)),)).result

    def splat(self, element: Value, n: int) -> Value:
        kind = VecType(element_of(element.type), n)
        if isinstance(element, Constant):
            return Constant(kind, element.value)
        return self.emit("vec.splat", (element,), (kind,)).result

    def extract(self, vector: Value, index: int) -> Value:
        elem = element_of(vector.type)
        if isinstance(vector, Constant):
            return Constant(elem, vector.value)
        return self.emit("vec.extract", (vector,), (elem,), {"index": index}).result

    def shuffle(self, vector: Value, indices: Sequence[int]) -> Value:
        kind = VecType(element_of(vector.type), len(indices))
        if isinstance(vector, Constant):
            return Constant(kind, vector.value)
        if kind == vector.type and list(indices) == list(range(kind.n)):
            return vector
        return self.emit("vec.shuffle", (vector,), (kind,), {"indices": tuple(indices)}).result

    def concat(self, parts: Sequence[Value]) -> Value:
        """Vectors or scalars one after another, as one vector."""
        count = sum(v.type.n if isinstance(v.type, VecType) else 1 for v in parts)
        return self.emit("vec.concat", parts, (VecType(element_of(parts[0].type), count),)).result

    def reduce(self, vector: Value, kind: str, groups: Sequence[Sequence[int]], init: Value | None = None) -> Value:
        """Fold each group of elements from left to right; one group gives a scalar."""
        elem = element_of(vector.type)
        result: Type = elem if len(groups) == 1 else VecType(elem, len(groups))
        operands = (vector,) if init is None else (vector, init)
        return self.emit("vec.reduce", operands, (result,), {"kind": kind, "groups": tuple(map(tuple, groups))}).result

    # -- memory --------------------------------------------------------------------------------------------------

    def ptr_add(self, pointer: Value, offset: Index, align: int | None = None) -> Value:
        """``pointer + offset`` in elements; ``align``: of the result, where more is known than the offset tells."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        kind = pointer.type
        assert isinstance(kind, PtrType)
        if align is None:
            step = kind.elem.bytes * (offset if isinstance(offset, int) else 1)
            align = fold.common_alignment(kind.align, step)
        result = PtrType(kind.elem, kind.space, align)
        return self.emit("ptr.add", (pointer, self.index(offset)), (result,)).result

    def ptr_cast(self, pointer: Value, to: PtrType) -> Value:
        return pointer if pointer.type == to else self.emit("ptr.cast", (pointer,), (to,)).result

    def load(self, pointer: Value, n: int | None = None) -> Value:
        """One element (``n`` None) or a vector of ``n`` contiguous elements."""
        elem = element_of(pointer.type)
        return self.emit("load", (pointer,), (elem if n is None else VecType(elem, n),)).result

    def store(self, pointer: Value, value: Value) -> None:
        self.emit("store", (pointer, value))

    def frag_alloc(self, elem: ScalarType, n: int, hint: str | None = None) -> Value:
        return self.emit("frag.alloc", (), (FragType(elem, n),), hint=hint).result

    def frag_load(self, frag: Value, offsets: Sequence[int], index: Value | None = None, scalar: bool = False) -> Value:
        elem = element_of(frag.type)
        result: Type = elem if scalar else VecType(elem, len(offsets))
        operands = (frag,) if index is None else (frag, index)
        return self.emit("frag.load", operands, (result,), {"offsets": tuple(offsets)}).result

    def frag_store(self, frag: Value, value: Value, offsets: Sequence[int], index: Value | None = None) -> None:
        operands = (frag, value) if index is None else (frag, value, index)
        self.emit("frag.store", operands, (), {"offsets": tuple(offsets)})

    def smem_alloc(self, offset: int, size: int, align: int, elem: ScalarType, hint: str | None = None) -> Value:
        kind = PtrType(elem, MemSpace.SMEM, align)
        return self.emit("smem.alloc", (), (kind,), {"offset": offset, "bytes": size, "align": align}, hint=hint).result

    # -- threads and instructions --------------------------------------------------------------------------------

    def sreg(self, name: str) -> Value:
        return self.emit("sreg", (), (I32,), {"name": name}, hint=name.replace(".", "_")).result

    def call(self, atom: Any, operands: Sequence[Value], results: Sequence[Type] = (), **attrs: Any) -> list[Value]:
        """One instruction; checked by the instruction at once, so that the error names the user's line."""
        if not atom.wide and any(kind in WIDE for kind in (*(value.type for value in operands), *results)):
            raise ConstraintError(
                f"{atom} takes no numbers of 128 bits: give it the halves (x >> 64).to(Uint64) and x.to(Uint64)"
            )
        op = self.emit("call", operands, results, {"atom": atom, **attrs})
        atom.verify(op)
        return op.results


def _wraps(opcode: str, a: Value, b: Value) -> bool:
    elem = element_of(a.type)
    if opcode in ("shl", "shr") and isinstance(b, Constant):
        return not 0 <= b.value < elem.width
    return may_overflow(opcode, elem)


Builder._stack = _Stack()
