"""The primitives of ``tcgen05``: one instruction each, on addresses and descriptors that the program makes.

A whole warp allocates, frees, loads, stores and waits; one thread (``if elect_sync():``) issues MMAs, copies and
commits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.atoms.tcgen05_described import DescribedCopy, DescribedMma
from tilewright.atoms.tensor_memory_copy import tmem_copy_layouts
from tilewright.atoms.tensor_memory_move import TmemLoad, TmemStore
from tilewright.atoms.tensor_memory_shift import TmemShift
from tilewright.errors import ConstraintError
from tilewright.experimental import choices
from tilewright.experimental.choices import CTAGroup, Tcgen05MMAKind, chosen
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.lang.device import tensor_memory as device
from tilewright.lang.device.array import Array
from tilewright.lang.device.atomic import pointer_of
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, unwrap
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import recast_ptr
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.lang.tensors.tensor_ssa import TensorSSA

__all__ = [
    "TmemAddr",
    "make_tmem_ptr",
    "make_tmem_ptr_from_warp_row_col",
    "tcgen05_alloc",
    "tcgen05_commit",
    "tcgen05_cp",
    "tcgen05_dealloc",
    "tcgen05_fence",
    "tcgen05_ld",
    "tcgen05_mma",
    "tcgen05_mma_block_scale",
    "tcgen05_mma_ws",
    "tcgen05_relinquish_alloc_permit",
    "tcgen05_shift",
    "tcgen05_st",
    "tcgen05_wait",
]
FACTORS = {("mxf8f6f4", 32): 1, ("mxf4", 32): 2, ("mxf4nvf4", 32): 2, ("mxf4nvf4", 16): 4}
"""By the kind and the elements that share one: the factors of a row that one instruction takes."""


def make_tmem_ptr(address: Any, dtype: Any = Int32, *, loc: Any = None, ip: Any = None) -> TensorMemory:
    """The address ``lane << 16 | column`` as a pointer to elements of ``dtype`` in tensor memory.

    >>> per_thread(lambda t: (make_tmem_ptr(t, Int32) + 8).toint(), 2)
    [8, 9]
    """
    return TensorMemory(Int32(address), dtype)


def make_tmem_ptr_from_warp_row_col(
    base: Any, warp: Any, column: Any, dtype: Any = Int32, *, loc: Any = None, ip: Any = None
) -> TensorMemory:
    """The address of the first lane that warp ``warp`` reaches, at a column behind ``base``.

    >>> [hex(x) for x in per_thread(lambda t: make_tmem_ptr_from_warp_row_col(0, t, 8).toint(), 2)]
    ['0x8', '0x200008']
    """
    return TensorMemory(Int32(base) + (Int32(warp) << 21) + Int32(column), dtype)


class TmemAddr:
    """Addresses of tensor memory as numbers.

    >>> [hex(x) for x in per_thread(lambda t: TmemAddr.from_row_col(32, t), 2)]
    ['0x200000', '0x200001']
    """

    @staticmethod
    def from_row_col(row: Any, col: Any, *, loc: Any = None, ip: Any = None) -> Int32:
        """``row << 16 | col``."""
        return (Int32(row) << 16) | Int32(col)


def tcgen05_alloc(
    dst: Any,
    num_columns: Any,
    *,
    group: Any = CTAGroup.CTA_1,
    is_exclusive: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Allocate columns; their address is written to ``dst``, an Int32 in shared memory. A whole warp.

    >>> tcgen05_alloc(0, 32)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_alloc: a pointer (or a tensor, for its first element) is ...
    """
    columns = unwrap(num_columns)
    device.alloc_tmem(columns, recast_ptr(_smem(dst, "tcgen05_alloc"), dtype=Int32), _pair(group, "tcgen05_alloc"))


def tcgen05_dealloc(
    tmem: Any, num_columns: Any, *, group: Any = CTAGroup.CTA_1, loc: Any = None, ip: Any = None
) -> None:
    """Free columns. A whole warp.

    >>> tcgen05_dealloc(0, 32)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_dealloc: a pointer of tensor memory is needed, not 0: ...
    """
    device.dealloc_tmem(_tmem(tmem, "tcgen05_dealloc"), unwrap(num_columns), _pair(group, "tcgen05_dealloc"))


def tcgen05_relinquish_alloc_permit(*, group: Any = CTAGroup.CTA_1, loc: Any = None, ip: Any = None) -> None:
    """This block allocates no more. A whole warp.

    >>> tcgen05_relinquish_alloc_permit(group=3)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_relinquish_alloc_permit: 3 is not a CTAGroup; there are CTA_1, CTA_2
    """
    device.relinquish_tmem_alloc_permit(_pair(group, "tcgen05_relinquish_alloc_permit"))


def tcgen05_wait(kind: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Wait for this thread's loads, or stores, of tensor memory. A whole warp.

    >>> per_thread(lambda t: (tcgen05_wait("load"), t)[-1], 32)[:2]
    [0, 1]
    """
    load = chosen(choices.Tcgen05Wait, kind, "tcgen05_wait") is choices.Tcgen05Wait.LOAD
    (device.fence_view_async_tmem_load if load else device.fence_view_async_tmem_store)()


def tcgen05_fence(kind: Any, *, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.fence`` before or after a synchronisation of threads.

    >>> per_thread(lambda t: (tcgen05_fence("before_thread_sync"), t)[-1], 32)[:2]
    [0, 1]
    """
    before = chosen(choices.Tcgen05Fence, kind, "tcgen05_fence") is choices.Tcgen05Fence.BEFORE_THREAD_SYNC
    (device.tcgen05_fence_before_thread_sync if before else device.tcgen05_fence_after_thread_sync)()


def tcgen05_commit(
    mbar: Any, *, group: Any = CTAGroup.CTA_1, multicast_mask: Any = None, loc: Any = None, ip: Any = None
) -> None:
    """The mbarrier gets an arrival when the MMAs and copies that this thread has issued are done.

    >>> tcgen05_commit(0)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_commit: a pointer (or a tensor, for its first element) is ...
    """
    blocks = chosen(CTAGroup, group, "tcgen05_commit").value
    device.tcgen05_commit(recast_ptr(_smem(mbar, "tcgen05_commit"), dtype=Int64), multicast_mask, blocks)


class _Loaded(TensorSSA):
    """Registers that a load fills: read at their first use, behind the wait."""

    __slots__ = ("registers",)

    def __init__(self, registers: Tensor, dtype: Any) -> None:
        self.registers = registers
        self.shape, self.dtype = (int(registers.shape),), dtype

    @property
    def value(self) -> Value:  # type: ignore[override]  # not a slot
        value: Value = self.registers.load().value
        return value

    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:  # type: ignore[override]  # of a slice, too
        if isinstance(coord, slice):
            return TensorSSA(self.value, self.shape, self.dtype)[coord]
        return self.registers[coord]


def tcgen05_ld(
    shape: Any, tmem: Any, *, num: int = 1, offset: Any = None, pack: bool = False, loc: Any = None, ip: Any = None
) -> TensorSSA:
    """Load ``num`` times the shape (``"32x32b"``) from tensor memory: the registers of this thread, as a Vector of the
    pointer's type, which can be used behind ``tcgen05_wait(kind=LOAD)``. A whole warp; the address is that of the
    warp's own lanes.

    >>> from tilewright import Float32, Vector
    >>> def through(t):
    ...     held = arch.alloc_smem(Int32, 1)
    ...     tcgen05_alloc(held, 32)
    ...     tcgen05_relinquish_alloc_permit()
    ...     arch.sync_warp()
    ...     place = make_tmem_ptr(held.load(), Float32)
    ...     tcgen05_st("32x32b", place, Vector.from_elements((t, 2 * t), Float32))
    ...     tcgen05_wait("store")
    ...     both = tcgen05_ld("32x32b", place, num=2)
    ...     tcgen05_wait("load")
    ...     arch.sync_warp()
    ...     tcgen05_dealloc(place, 32)
    ...     return both[0] + both[1]
    >>> per_thread(through, 32, dtype=Float32)[:3]
    [0.0, 3.0, 6.0]
    """
    place = _tmem(tmem, "tcgen05_ld")
    name = chosen(choices.Tcgen05LdStShape, shape, "tcgen05_ld").value
    count = tmem_copy_layouts(name, num, pack).register_count
    registers = make_rmem_tensor(count * 32 // place.dtype.width, place.dtype)
    _move(TmemLoad(name, num, pack), registers, place, offset)
    return _Loaded(registers, place.dtype)


def tcgen05_st(
    shape: Any, tmem: Any, value: Any, *, offset: Any = None, unpack: bool = False, loc: Any = None, ip: Any = None
) -> None:
    """Store a Vector of 32-bit registers' worth of elements to tensor memory, as often as the shape fits. A whole warp;
    ``tcgen05_wait(kind=STORE)`` waits for it.

    >>> tcgen05_st("32x32b", 0, None)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_st: a pointer of tensor memory is needed, not 0: ...
    """
    place = _tmem(tmem, "tcgen05_st")
    if isinstance(value, Array):
        value = value.load(0, int(value.shape[0]))
    if not isinstance(value, TensorSSA):
        raise ConstraintError(f"tcgen05_st takes a Vector of registers, not {value!r}")
    registers = make_rmem_tensor(value.numel, value.dtype)
    registers.store(value)
    name = chosen(choices.Tcgen05LdStShape, shape, "tcgen05_st").value
    each = tmem_copy_layouts(name, 1, unpack).register_count
    count = value.numel * value.dtype.width // 32
    if count % each or value.numel * value.dtype.width % 32:
        raise ConstraintError(
            f"tcgen05_st: {value.numel} x {value.dtype} are not a multiple of the {each} registers of {name}"
        )
    _move(TmemStore(name, count // each, unpack), registers, place, offset)


def _move(instruction: Any, registers: Tensor, place: TensorMemory, offset: Any) -> None:
    if offset is not None and unwrap(offset) != instruction.split:
        fix = "leave it out" if instruction.split is None else f"its halves are {instruction.split} columns apart here"
        raise ConstraintError(f"{instruction.mnemonic()}: offset={offset}: {fix}")
    numbers = (tuple(range(int(registers.shape))),)
    stores = isinstance(instruction, TmemStore)
    operands = [registers.engine.frag, place.value()]
    Builder.current().call(instruction, operands, registers=numbers, store=stores, predicated=False)


def tcgen05_mma(
    kind: Any,
    group: Any,
    d: Any,
    a: Any,
    b: Any,
    idesc: Any,
    enable_input_d: Any,
    *,
    sparse_metadata: Any = None,
    collector_op: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``tcgen05.mma``: D (a pointer of tensor memory) = A * B, added to D where ``enable_input_d``. A is a matrix
    descriptor, or a pointer of tensor memory; one thread issues.

    ``sparse_metadata``: A is sparse (``tcgen05.mma.sp``), and this is the pointer to its metadata in tensor memory, of
    which the instruction descriptor selects a part. ``collector_op``: whether the tensor core may keep A, or take what
    an earlier MMA has let it keep (:class:`.Tcgen05MMACollectorOp`).

    >>> tcgen05_mma("f32", "cta_1", None, None, None, None, True)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_mma: 'f32' is not a Tcgen05MMAKind; there are F16, TF32, ...
    """
    what = "tcgen05_mma"
    name = chosen(Tcgen05MMAKind, kind, what).value
    form = _Form(name, group, sparse_metadata, collector=_collector("a", collector_op, what))
    _mma(what, form, d, a, b, idesc, enable_input_d)


def tcgen05_mma_block_scale(
    kind: Any,
    group: Any,
    d: Any,
    a: Any,
    b: Any,
    idesc: Any,
    enable_input_d: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    scale_vec_size: Any = None,
    sparse_metadata: Any = None,
    collector_op: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """:func:`tcgen05_mma` with block scales at ``scale_a`` and ``scale_b``, pointers of tensor memory. The bytes of the
    columns at which they begin are in the instruction descriptor.

    >>> tcgen05_mma_block_scale("mxf4", "cta_1", None, None, None, None, True, None, None, scale_vec_size="block16")
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_mma_block_scale: kind mxf4 has no factors for 16 elements each
    """
    what = "tcgen05_mma_block_scale"
    name = chosen(choices.MMABlockScaleKind, kind, what).value
    size = _scale_size(name, scale_vec_size, what)
    form = _Form(name, group, sparse_metadata, size, (scale_a, scale_b), collector=_collector("a", collector_op, what))
    _mma(what, form, d, a, b, idesc, enable_input_d)


def tcgen05_mma_ws(
    kind: Any,
    d: Any,
    a: Any,
    b: Any,
    idesc: Any,
    enable_input_d: Any,
    *,
    sparse_metadata: Any = None,
    zero_column_mask: Any = None,
    collector_b_buffer: Any = choices.Tcgen05MMACollectorBBuffer.B0,
    collector_op: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``tcgen05.mma.ws``, of M = 32, 64 or 128 and of one block; as :func:`tcgen05_mma`, but that B is what the tensor
    core may keep, in one of four buffers. ``zero_column_mask``: a zero-column mask descriptor (Int64).

    >>> tcgen05_mma_ws("mxf4", None, None, None, None, True)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05.mma.ws.cta_group::1.kind::mxf4: .ws is for one block, and for kinds ...
    """
    what = "tcgen05_mma_ws"
    name = chosen(Tcgen05MMAKind, kind, what).value
    buffer = chosen(choices.Tcgen05MMACollectorBBuffer, collector_b_buffer, what).value
    collector = _collector(buffer, collector_op, what)
    form = _Form(name, CTAGroup.CTA_1, sparse_metadata, zero_columns=zero_column_mask, ws=True, collector=collector)
    _mma(what, form, d, a, b, idesc, enable_input_d)


def _collector(buffer: str, op: Any, what: str) -> str:
    return "" if op is None else f"{buffer}::{chosen(choices.Tcgen05MMACollectorOp, op, what).value}"


def _scale_size(kind: str, size: Any, what: str) -> tuple[int, int]:
    """How the size of a block is written: factors of a row in one instruction, else elements that share one."""
    if size is None:
        return (FACTORS[kind, 32] if kind != "mxf4nvf4" else 4), 0
    named = str(getattr(size, "name", size)).upper()
    if named.startswith("BLOCK"):
        elements = chosen(choices.Tcgen05MMABlockScale, size, what).value
        if (kind, elements) not in FACTORS:
            raise ConstraintError(f"{what}: kind {kind} has no factors for {elements} elements each")
        return 0, elements
    return int(chosen(choices.Tcgen05MMAScaleVecSize, size, what).value), 0


class _Form(NamedTuple):
    """Which instruction it is, and the operands that only some have."""

    kind: str
    group: Any
    metadata: Any = None
    size: tuple[int, int] = (0, 0)
    """Factors of a row in one instruction; else elements that share one."""
    scales: tuple[Any, ...] = ()
    zero_columns: Any = None
    ws: bool = False
    collector: str = ""


def _mma(what: str, form: _Form, d: Any, a: Any, b: Any, idesc: Any, keep: Any) -> None:
    in_memory = isinstance(getattr(a, "iterator", a), TensorMemory)
    mma = DescribedMma(
        form.kind,
        chosen(CTAGroup, form.group, what).value,
        "TS" if in_memory else "SS",
        form.size[0],
        form.metadata is not None,
        form.ws,
        form.zero_columns is not None,
        form.collector,
        form.size[1],
    )
    operand_a = _tmem(a, what).value() if in_memory else Int64(getattr(a, "word", a)).ir_value()
    operands = [
        _tmem(d, what).value(),
        operand_a,
        Int64(getattr(b, "word", b)).ir_value(),
        Int32(getattr(idesc, "word", idesc)).ir_value(),
        Boolean(keep).ir_value(),
    ]
    if form.metadata is not None:
        operands.append(_tmem(form.metadata, what).value())
    operands += [_tmem(x, what).value() for x in form.scales]
    if form.zero_columns is not None:
        operands.append(Int64(form.zero_columns).ir_value())
    Builder.current().call(mma, operands, ())


def tcgen05_cp(
    shape: Any,
    taddr: Any,
    smem_desc: Any,
    *,
    group: Any = CTAGroup.CTA_1,
    multicast: Any = None,
    src_format: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``tcgen05.cp``: copy the rows that a matrix descriptor names to tensor memory, in order with the MMAs; one thread
    issues. ``shape`` is a :class:`.Tcgen05CpShape` with ``multicast``, or a :class:`.S2TCopyMode`; ``src_format``
    (:class:`.Tcgen05CpSrcFormat`): the rows are packed numbers of 4 or 6 bits, each of which gets a byte.

    >>> tcgen05_cp("32x128b", 0, 0, multicast="warpx3")
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_cp: 'warpx3' is not a Tcgen05CpMulticast; there are NONE, ...
    """
    if isinstance(shape, choices.S2TCopyMode):
        form = shape.value
    else:
        form = chosen(choices.Tcgen05CpShape, shape, "tcgen05_cp").value
        if multicast is not None:
            cast = chosen(choices.Tcgen05CpMulticast, multicast, "tcgen05_cp").value
            form = f"{form}.{cast}" if cast else form
    operands = [_tmem(taddr, "tcgen05_cp").value(), Int64(getattr(smem_desc, "word", smem_desc)).ir_value()]
    packed = "" if src_format is None else chosen(choices.Tcgen05CpSrcFormat, src_format, "tcgen05_cp").value
    copy = DescribedCopy(form, chosen(CTAGroup, group, "tcgen05_cp").value, packed)
    Builder.current().call(copy, operands, ())


def tcgen05_shift(tmem: Any, *, group: Any = CTAGroup.CTA_1, loc: Any = None, ip: Any = None) -> None:
    """``tcgen05.shift.down``: in 8 columns of the 32 lanes that begin at ``tmem``, each lane but the last gets what the
    next one has, in order with the MMAs; one thread issues. In which direction rows move, PTX leaves to the reader.

    >>> tcgen05_shift(0)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: tcgen05_shift: a pointer of tensor memory is needed, not 0: ...
    """
    place = _tmem(tmem, "tcgen05_shift").value()
    Builder.current().call(TmemShift(chosen(CTAGroup, group, "tcgen05_shift").value), [place], ())


def _tmem(x: Any, what: str) -> TensorMemory:
    """A pointer of tensor memory."""
    address = getattr(x, "iterator", x)
    if isinstance(address, TensorMemory):
        return address
    raise ConstraintError(
        f"{what}: a pointer of tensor memory is needed, not {x!r}: make_tmem_ptr(address, dtype) makes one of a number"
    )


def _smem(x: Any, what: str) -> Pointer:
    return pointer_of(x, what)


def _pair(group: Any, what: str) -> bool:
    return chosen(CTAGroup, group, what) is CTAGroup.CTA_2
