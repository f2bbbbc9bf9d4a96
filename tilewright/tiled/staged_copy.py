"""``cute.copy`` and its simpler kin: static loops over the rest modes, staged as one instruction call."""

from __future__ import annotations

from typing import Any, Never, TypedDict, Unpack

from tilewright.atoms.copy import CopyInstruction
from tilewright.atoms.universal import UniversalCopy
from tilewright.errors import ConstraintError, TilewrightError, unknown_keyword
from tilewright.ir.builder import Builder
from tilewright.ir.effects import Access
from tilewright.ir.types import MemSpace
from tilewright.lang.numbers.numeric import Uint8, wrap
from tilewright.lang.tensors.access import need_no_fraction
from tilewright.lang.tensors.algebra import make_rmem_tensor, recast_tensor
from tilewright.lang.tensors.overhung import OverhungPointer
from tilewright.lang.tensors.pointer import Pointer, is_packed
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout, flatten_to_tuple, is_static, logical_divide, make_layout, size
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.predicates import predicate_values
from tilewright.tiled.retile import check_registers
from tilewright.tiled.sides import as_elements, check_types, in_registers, memory_pointers, register_numbers
from tilewright.tiled.vectors import autovec_copy


class CopyOptions(TypedDict, total=False):
    """The keywords of :func:`copy` that some instructions take."""

    tma_bar_ptr: Pointer | None
    mbar_ptr: Pointer | None
    mcast_mask: Any
    tma_desc_ptr: Pointer | None
    cache_policy: Any


KEYWORDS = tuple(CopyOptions.__annotations__)

Split = tuple[Layout, Layout, Layout, Layout]


def copy(
    atom: CopyAtom,
    src: Tensor,
    dst: Any,  # a Tensor, or two
    *,
    pred: Any = None,
    tma_bar_ptr: Pointer | None = None,
    mbar_ptr: Pointer | None = None,
    mcast_mask: Any = None,
    tma_desc_ptr: Pointer | None = None,
    cache_policy: Any = None,
    unroll_factor: int | None = None,
    loc: Any = None,
    ip: Any = None,
    **unknown: Never,
) -> None:
    """Copy ``src`` to ``dst`` with the instruction of ``atom``, as often as the modes after the first ask for.

    Args:
        atom: the instruction: of ``make_copy_atom``, ``make_tiled_tma_atom``, or a tiled copy made of one.
        src: (V, ...), in elements of the atom's type. Mode 0 is what one instruction moves for one thread (or a tuple
            that begins with it), as ``partition_S``, ``retile`` and ``tma_partition`` give it; the instruction is
            repeated over the other modes.
        dst: (V, ...) with as many repetitions, of ``partition_D``, ``retile`` or ``tma_partition``. Of a load that
            reduces (``tcgen05.LdRed32x32bOp``) a pair: the registers, and one number for each repetition.
        pred: a tensor of Booleans, one for each repetition. Where it is false nothing is copied (``cp.async`` writes
            zeros, also behind the end of a shared-memory tensor that is smaller than the tile: leave room for them).
        tma_bar_ptr: of a TMA load: a pointer to the mbarrier (Int64 in shared memory) at which its bytes count.
        mbar_ptr: the same of a bulk copy.
        mcast_mask: of a multicast load: 16 bits, one for each block of the cluster that receives it
            (``create_tma_multicast_mask``).
        tma_desc_ptr: of a TMA copy: a pointer to a tensor map in memory to copy by, in place of the atom's own.
        cache_policy: of a TMA copy: a member EVICT_NORMAL, EVICT_FIRST or EVICT_LAST of an enumeration, or the 64 bits
            that ``createpolicy`` gives.
        unroll_factor: how far a loop over the repetitions is unrolled; here they always are, one after another.

    Raises:
        ConstraintError: sizes, element types, memory spaces, alignment or contiguity do not fit the instruction.

    >>> from tilewright import Int32
    >>> from tilewright.cute.runtime import from_dlpack
    >>> @cute.kernel
    ... def move(a: cute.Tensor, b: cute.Tensor):
    ...     atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int32, num_bits_per_copy=128)
    ...     tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(4), cute.make_layout(4))  # 4 threads, 4 values each
    ...     thread = tiled.get_slice(cute.arch.thread_idx()[0])
    ...     source, target = thread.partition_S(a), thread.partition_D(b)  # (CPY, CPY_M): two copies of 4 values
    ...     print(source.layout)
    ...     cute.copy(tiled, source, target)
    >>> @cute.jit
    ... def run(a: cute.Tensor, b: cute.Tensor):
    ...     move(a, b).launch(grid=(1, 1, 1), block=(4, 1, 1))
    >>> a, b = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    >>> run(from_dlpack(a, assumed_align=16), from_dlpack(b, assumed_align=16))
    ((4,1),(2)):((1,0),(16))
    >>> bool((a == b).all())
    True
    """
    if not isinstance(atom, CopyAtom):
        raise ConstraintError(f"cute.copy takes a copy atom first, not {atom!r}: make one with cute.make_copy_atom")
    src, dst = (x[0] if isinstance(x, (tuple, list)) and len(x) == 1 else x for x in (src, dst))  # type: ignore[assignment]  # the tensor of a list
    reduction = getattr(atom.op, "stage_reduction", None)
    if reduction is not None and isinstance(dst, (tuple, list)) and len(dst) == 2:
        return reduction(atom, src, dst)
    for name, tensor in (("source", src), ("destination", dst)):
        if not isinstance(tensor, Tensor):
            raise ConstraintError(f"cute.copy: the {name} must be a tensor, not {tensor!r}")
    for name in unknown:
        raise unknown_keyword("cute.copy", name, ("pred", *KEYWORDS))
    values = (tma_bar_ptr, mbar_ptr, mcast_mask, tma_desc_ptr, cache_policy)
    options = {name: value for name, value in zip(KEYWORDS, values, strict=True) if value is not None}
    _check_memories(atom, src, dst)
    if atom.stage_copy is not None:
        return atom.stage_copy(src, dst, pred=pred, **options)
    for name in options:
        raise ConstraintError(f"cute.copy: {atom.instruction} takes no {name}")
    if pred is not None:
        src, dst = guarded(src), guarded(dst)
    if atom.instruction.auto and atom.scalar.width != src.element_type.ir_type.width:
        atom = CopyAtom(atom.op, src.element_type)  # one element, of whatever width: published epilogues share an atom
    check_types(atom.instruction, src, dst, atom.scalar)
    if is_packed(src.element_type):
        atom, src, dst = _as_bytes(atom, src, dst)
    instruction = atom.instruction
    if instruction.auto and pred is None:
        _check_rest_modes(atom, src.linear, dst.linear)
        return autovec_copy(src, dst)
    _stage(atom, src, dst, split_modes(atom, src, dst), pred)
    return None


def guarded(tensor: Tensor) -> Tensor:
    """``tensor`` for an access whose predicates keep it inside the tensor that it was cut from."""
    pointer = tensor.engine
    return Tensor(pointer.plain(), tensor.linear) if isinstance(pointer, OverhungPointer) else tensor


def _check_memories(atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
    """ConstraintError where the operation is one between two kinds of memory, and the tensors are in others."""
    memories = getattr(atom.op, "memories", None)
    if memories is None:
        return
    for role, tensor, name in zip(("source", "destination"), (src, dst), memories, strict=True):
        if str(tensor.memspace) not in (name, "generic"):
            raise ConstraintError(
                f"cute.copy: the {role} of {type(atom.op).__name__} is in {name}, not in {tensor.memspace}: "
                "use cute.nvgpu.CopyUniversalOp, which copies between any memories"
            )


def _as_bytes(atom: CopyAtom, src: Tensor, dst: Tensor) -> tuple[CopyAtom, Tensor, Tensor]:
    """The same copy with the bytes of elements that share them."""
    why = "elements of one byte are not neighbours"
    for x in (src, dst):
        strides = [d for n, d in zip(*map(flatten_to_tuple, (x.linear.shape, x.linear.stride)), strict=True) if n != 1]
        if strides and all(isinstance(d, int) and d > 1 for d in strides):
            raise ConstraintError(
                f"{atom.instruction}: a thread's elements of {x.element_type.width} bits are not side by side in {x}, "
                "so their bytes hold elements of other threads, too: copy along the mode in which elements are "
                "contiguous, or give each thread neighbours along that mode first"
            )
    try:
        atom, bytes_ = CopyAtom(atom.instruction, Uint8), [recast_tensor(x, Uint8) for x in (src, dst)]
        bits = [size(x.linear) * x.element_type.width for x in (src, dst)]
        if [size(x.linear) * 8 for x in bytes_] == bits:
            return atom, bytes_[0], bytes_[1]
    except TilewrightError as error:
        why = str(error)
    raise ConstraintError(
        f"{atom.instruction}: elements of {src.element_type.width} bits are copied as bytes, and those of "
        f"{src.linear} and {dst.linear} do not come in whole ones: {why}"
    )


def split_modes(atom: CopyAtom, src: Tensor, dst: Tensor) -> Split:
    """(values, rest) of the source and of the destination: what one instruction moves, and the repetitions."""
    s, d = _modes(src.linear), _modes(dst.linear)
    n_src, n_dst = atom.num_val_src, atom.num_val_dst
    while (size(s[0]), size(d[0])) != (n_src, n_dst):
        if isinstance(s[0].shape, tuple) and isinstance(d[0].shape, tuple):
            s, d = [*s[0], *s[1:]], [*d[0], *d[1:]]
        elif atom.instruction.splits and _divides(n_src, s[0]) and _divides(n_dst, d[0]):
            s, d = [*logical_divide(s[0], n_src), *s[1:]], [*logical_divide(d[0], n_dst), *d[1:]]
        else:
            raise ConstraintError(
                f"{atom.instruction}: moves {n_src} x {atom.scalar} of the source and {n_dst} of the destination for "
                f"each thread, but mode 0 has {size(s[0])} in {src.linear} and {size(d[0])} in {dst.linear}: "
                "partition (or retile) both with this copy"
            )
    rest_s, rest_d = make_layout(*s[1:], Layout(1, 0)), make_layout(*d[1:], Layout(1, 0))
    if not is_static(rest_s.shape) or not is_static(rest_d.shape):
        raise ConstraintError(
            f"{atom.instruction}: the loop over {src.linear} is static and needs static extents: slice it first"
        )
    _check_rest_modes(atom, src.linear, dst.linear)
    return s[0], rest_s, d[0], rest_d


def _check_rest_modes(atom: CopyAtom, src: Layout, dst: Layout) -> None:
    """Repetitions correspond mode by mode: an unretiled fragment has as many, but along other modes."""

    def repetitions(layout: Layout, values: int) -> list[int]:
        inside, *rest = [int(size(mode)) for mode in _modes(layout)]
        return [n for n in (inside // values, *rest) if n > 1]

    of_src, of_dst = repetitions(src, atom.num_val_src), repetitions(dst, atom.num_val_dst)
    if of_src != of_dst:
        shown = [f"({','.join(map(str, n))})" if n else "one" for n in (of_src, of_dst)]
        raise ConstraintError(
            f"{atom.instruction}: the modes do not match: the source {src} takes {shown[0]} copies of "
            f"{atom.num_val_src} values, the destination {dst} {shown[1]} of {atom.num_val_dst}: partition (or "
            "retile) both with this copy"
        )


def _modes(layout: Any) -> list[Layout]:
    if not isinstance(layout, Layout):
        raise ConstraintError(
            f"a copy needs a plain layout, not {layout}: make the tensor with make_tensor, which moves a swizzle to "
            "the pointer"
        )
    return list(layout) if isinstance(layout.shape, tuple) else [layout]


def _divides(n: int, mode: Layout) -> bool:
    return is_static(mode.shape) and size(mode) % n == 0 and size(mode) > n


def _stage(atom: CopyAtom, src: Tensor, dst: Tensor, split: Split, pred: Any) -> None:
    instruction = atom.instruction
    v_src, r_src, v_dst, r_dst = split
    builder = Builder.current()
    repetitions = int(size(r_src))
    predicates = predicate_values(instruction, pred, repetitions, int(size(v_src)), _neighbours(src, int(size(v_src))))
    extra = predicates or []
    loads, stores = in_registers(dst), in_registers(src)
    _check_direction(instruction, src, dst)
    if loads and stores:
        if not instruction.exchanges:
            return _between_registers(src, dst, split, pred)
        if pred is not None:
            raise ConstraintError(f"{instruction}: cannot be predicated, all 32 lanes execute it: copy, then select")
        dst_numbers = register_numbers(instruction, dst, v_dst, r_dst)
        src_numbers = register_numbers(instruction, src, v_src, r_src)
        builder.call(
            instruction, [dst.engine.frag, src.engine.frag], registers=dst_numbers, source_registers=src_numbers
        )
        return
    if not loads and not stores:
        sources = memory_pointers(instruction, "source", src, v_src, r_src)
        targets = memory_pointers(instruction, "destination", dst, v_dst, r_dst)
        builder.call(instruction, [*sources, *targets, *extra], count=repetitions, predicated=predicates is not None)
        return
    registers, memory, side = (dst, src, "source") if loads else (src, dst, "destination")
    v_reg, r_reg, v_mem, r_mem = (v_dst, r_dst, v_src, r_src) if loads else (v_src, r_src, v_dst, r_dst)
    numbers = register_numbers(instruction, registers, v_reg, r_reg)
    check_registers(atom, registers, numbers, memory, r_mem)
    fragment = registers.engine.frag
    pointers = [as_elements(p, fragment) for p in memory_pointers(instruction, side, memory, v_mem, r_mem)]
    builder.call(
        instruction, [fragment, *pointers, *extra], registers=numbers, store=stores, predicated=predicates is not None
    )


def _neighbours(src: Tensor, values: int) -> int:
    """How many instructions of ``values`` the neighbouring values take: the first extent of mode 0."""
    first = size(_modes(src.linear)[0])
    leaf = flatten_to_tuple(_modes(src.linear)[0].shape)[0] if is_static(first) else 1
    return int(leaf) // values if leaf > values and leaf % values == 0 else 1


def _check_direction(instruction: CopyInstruction, src: Tensor, dst: Tensor) -> None:
    if not (_may_lie(instruction.source, src) and _may_lie(instruction.destination, dst)):
        raise ConstraintError(
            f"{instruction}: copies from {instruction.direction}, not from {src.memspace} {src.linear} to "
            f"{dst.memspace} {dst.linear}"
        )


def _may_lie(access: Access, tensor: Tensor) -> bool:
    return MemSpace(tensor.memspace.value) in access.spaces


def _between_registers(src: Tensor, dst: Tensor, split: Split, pred: Any) -> None:
    v_src, r_src, v_dst, r_dst = split
    source, target = (x.with_layout(make_layout(v, r)) for x, v, r in ((src, v_src, r_src), (dst, v_dst, r_dst)))
    if pred is None:
        return basic_copy(source, target)
    values = int(size(v_src))
    for i, chosen in enumerate(predicate_values(UniversalCopy(8), pred, int(size(r_src)), values) or ()):
        _select_registers([wrap(chosen)] * values, source[None, i], target[None, i])
    return None


def basic_copy(src: Tensor, dst: Tensor, *, loc: Any = None, ip: Any = None) -> None:
    """``dst[i] = src[i]`` for every element, converting the element type where it differs (no float to an integer).

    >>> from tilewright import Float32
    >>> def halves(t, p):
    ...     registers = cute.make_rmem_tensor(4, Float32)
    ...     cute.basic_copy(cute.make_tensor(p + 4 * t, 4), registers)  # Int32 to Float32
    ...     return registers[3] / 2
    >>> per_thread(halves, 2, memory=range(8), dtype=Float32)[0]
    [1.5, 3.5]
    """
    if size(src.linear) != size(dst.linear):
        raise ConstraintError(
            f"basic_copy: {src} and {dst} differ in size, {size(src.linear)} and {size(dst.linear)} elements: "
            "give both the same partition or tile"
        )
    if src.element_type is dst.element_type:
        return autovec_copy(src, dst)
    need_no_fraction(src.element_type, dst.element_type, dst)
    return dst.store(src.load().to(dst.element_type))


def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor, *, loc: Any = None, ip: Any = None) -> None:
    """``if pred[i]: dst[i] = src[i]`` for every element; element types must agree when both sides are in memory.

    >>> from tilewright import Boolean
    >>> def odd_ones(t, p):
    ...     source, target = cute.make_tensor(p, 4), cute.make_tensor(p + 4, 4)
    ...     odd = cute.make_rmem_tensor(4, Boolean)
    ...     for i in range(4):
    ...         odd[i] = source[i] % 2 == 1
    ...     cute.basic_copy_if(odd, source, target)
    >>> per_thread(odd_ones, 1, memory=[1, 2, 3, 4, 0, 0, 0, 0])[1]
    [1, 2, 3, 4, 1, 0, 3, 0]
    """
    if src.element_type is not dst.element_type:
        if not in_registers(src):
            raise ConstraintError(
                f"basic_copy_if: cannot convert {src.element_type} to {dst.element_type} between memories"
            )
        need_no_fraction(src.element_type, dst.element_type, dst)
        converted = make_rmem_tensor(make_layout(src.linear.shape), dst.element_type)
        converted.store(src.load().to(dst.element_type))
        src = converted
    if is_packed(src.element_type):
        raise ConstraintError(
            f"basic_copy_if: elements of {src.element_type.width} bits share bytes, which are copied whole or not at "
            "all: use cute.copy with a predicate for each copy of whole bytes"
        )
    one = CopyAtom(UniversalCopy(max(8, src.element_type.width)), src.element_type)
    flat = [make_layout(Layout(1, 0), x.linear) for x in (src, dst)]
    if not size(src.linear) == size(dst.linear) == size(pred.linear):
        raise ConstraintError(f"basic_copy_if: {src}, {dst} and the predicates {pred} differ in size")
    if in_registers(src) and in_registers(dst):
        return _select_registers(pred, src, dst)
    return _stage(one, src, dst, (flat[0][0], flat[0][1], flat[1][0], flat[1][1]), pred)


def _select_registers(pred: Any, src: Tensor, dst: Tensor) -> None:
    from tilewright.lang.tensors.select import select

    for i in range(size(src.linear)):
        dst[i] = select(pred[i], src[i], dst[i])


def copy_atom_call(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    pred: Any = None,
    loc: Any = None,
    ip: Any = None,
    **options: Unpack[CopyOptions],
) -> None:
    """One instruction: ``src`` and ``dst`` have exactly the values that it moves for one thread.

    >>> from tilewright import Int32
    >>> def swap(t, p):
    ...     atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int32, num_bits_per_copy=32)
    ...     cute.copy_atom_call(atom, cute.make_tensor(p + t, 1), cute.make_tensor(p + (7 - t), 1))
    >>> per_thread(swap, 4, memory=[1, 2, 3, 4, 0, 0, 0, 0])[1]
    [1, 2, 3, 4, 4, 3, 2, 1]
    """
    if size(src.linear) != atom.num_val_src or size(dst.linear) != atom.num_val_dst:
        raise ConstraintError(
            f"{atom.instruction}: one call moves {atom.num_val_src} x {atom.scalar}, not {src.linear} to "
            f"{dst.linear}: use cute.copy"
        )
    whole_src, whole_dst = (x.with_layout(make_layout(x.linear)) for x in (src, dst))
    copy(atom, whole_src, whole_dst, pred=pred, **options)
