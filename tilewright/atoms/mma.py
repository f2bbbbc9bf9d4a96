"""The common part of all matrix instructions: operands, checks, and the simulator's one gather, one matmul, one
scatter.

A call carries fragments ``[d, a, b]`` and the static layouts ``d_layout (V, M, N)``, ``a_layout (V, M, K)``,
``b_layout (V, N, K)`` of the registers, with ``d_offset``, ``a_offset``, ``b_offset``. It means ``d += a * b`` for
every (m, n, k) of the rest modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tilewright.atoms.matrix_descriptor import DescriptorFormat
from tilewright.atoms.value_types import shown
from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.effects import Access
from tilewright.ir.instruction import Instruction, Lanes
from tilewright.ir.lanes import Array
from tilewright.ir.types import F32, TF32, FragType, MemSpace, ScalarType
from tilewright.layout import Layout
from tilewright.layout.evaluate import static_offsets
from tilewright.layout.tuples import product


def check_rest_modes(atom: object, op: Op) -> None:
    """ConstraintError where the layouts of D, A and B are not (V, M, N), (V, M, K) and (V, N, K)."""
    layouts = [op.attrs[f"{x}_layout"] for x in "dab"]
    (_, dm, dn), (_, am, ak), (_, bn, bk) = (tuple(product(x.shape) for x in layout) for layout in layouts)
    pairs = (("M", "D", dm, "A", am), ("N", "D", dn, "B", bn), ("K", "A", ak, "B", bk))
    wrong = [f"{mode} is {x} of {left} and {y} of {right}" for mode, left, x, right, y in pairs if x != y]
    if wrong:
        raise ConstraintError(
            f"{atom}: the rest modes of D {layouts[0]}, A {layouts[1]} and B {layouts[2]} do not match: "
            f"D is (V,{dm},{dn}), A is (V,{am},{ak}), B is (V,{bn},{bk}), expected (V,M,N), (V,M,K), (V,N,K); "
            f"{', '.join(wrong)}: the tiles of A and B are M x K and N x K, whichever of the modes is contiguous"
        )


class Gather(NamedTuple):
    """``items [..., columns / per]``: which items of ``per`` neighbouring registers make the rows of a matrix."""

    items: Array
    per: int


class MatrixIndices(NamedTuple):
    """Precomputed indices of one call into ``32 * registers``: ``a`` makes ``[G, M, K]``, ``b`` ``[G, N, K]``;
    ``d [G, M, N]``; ``scatter`` makes the registers of D from ``[G, M, N]``, where these are all of D."""

    a: Gather
    b: Gather
    d: Array
    scatter: Gather | None
    steps: int


class Mma(Instruction):
    """A matrix instruction: ``D (M, N) += A (M, K) * B (N, K)``, each spread over threads by a thread-value layout."""

    shape_mnk: tuple[int, int, int]
    thr_id: Layout
    layout_a: Layout
    layout_b: Layout
    layout_c: Layout
    type_d: ScalarType
    type_a: ScalarType
    type_b: ScalarType
    multiplies: ClassVar[bool] = True
    ctas: int = 1
    """How many blocks work on one instruction."""
    sparsity: ClassVar[int] = 1
    """Elements of K of A for each that is stored. Where it is 2, a call has metadata as one more operand, ``e``."""
    fields: ClassVar[tuple[str, ...]] = ()
    """The fields of an atom of this instruction that a program may change at run time (``MmaAtom.set``)."""
    register_fields: ClassVar[tuple[str, ...]] = ()
    """Further ones, whose values are registers: scale factors."""
    descriptor_format: ClassVar[DescriptorFormat | None] = None
    """The format of the descriptors by which it names operands in shared memory; None: it reads registers only."""
    rows_go_on: bool = False
    """Whether a descriptor names a second place, where the rows of an operand go on."""
    accesses: tuple[Access, ...] = (
        Access("update", "D", (MemSpace.RMEM,), 0),
        Access("read", "A", (MemSpace.RMEM,), 1),
        Access("read", "B", (MemSpace.RMEM,), 2),
    )

    def layout_of_factors(self, operand: str) -> Layout | None:
        """(thread, element of K) to the element whose scale factor it is, of ``"SFA"`` or ``"SFB"``; None: the
        instruction reads none from registers."""
        return None

    @property
    def type_c(self) -> ScalarType:
        return self.type_d

    @property
    def cute_name(self) -> str:
        """The name of this atom in CuTe C++."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.cute_name

    def instruction(self) -> Mma:
        return self

    def major_of(self, operand: str) -> str:
        """``K`` or ``MN``: the contiguous mode of operand ``A`` or ``B`` where it is in shared memory."""
        raise NotImplementedError

    @property
    def threads(self) -> int:
        """How many threads execute one instruction together."""
        return product(self.thr_id.shape)

    @property
    def stored_k(self) -> int:
        """The elements along K that are stored of A for one instruction."""
        return self.shape_mnk[2] // self.sparsity

    def reads_shared(self, operand: str) -> bool:
        """Whether the instruction itself reads operand ``A`` or ``B`` from shared memory."""
        return False

    def stored_type(self, operand: str) -> ScalarType:
        """The type of operand ``A`` or ``B`` as a tensor in memory."""
        return self.type_a if operand == "A" else self.type_b

    def in_tensor_memory(self, operand: str) -> bool:
        """Whether operand ``A`` or ``C`` is in tensor memory."""
        return False

    def tensor_memory(self, operand: str, shape: Any) -> Layout:
        """The layout, in elements, of an operand in tensor memory with the shape of a partition."""
        raise NotImplementedError

    # -- checks --------------------------------------------------------------------------------------------------

    def verify(self, op: Op) -> None:
        if len(op.operands) != 3 + (self.sparsity > 1):
            more = "" if self.sparsity == 1 else ", and the metadata of a"
            raise ConstraintError(f"{self}: takes the fragments d, a and b{more}, not {len(op.operands)} operands")
        layouts = [op.attrs[f"{x}_layout"] for x in "dab"]
        for role, operand, layout, tv, required in zip(
            "DAB",
            op.operands[:3],
            layouts,
            (self.layout_c, self.layout_a, self.layout_b),
            (self.type_d, self.type_a, self.type_b),
            strict=True,
        ):
            self._verify_operand(role, operand.type, layout, op.attrs[f"{role.lower()}_offset"], tv, required)
        check_rest_modes(self, op)

    def _verify_operand(
        self, role: str, type_: Any, layout: Layout, offset: int, tv: Layout, required: ScalarType
    ) -> None:
        if not isinstance(type_, FragType):
            raise ConstraintError(
                f"{self}: {role} must be in registers, not {type_}: copy it to a fragment (make_fragment_{role}) first"
            )
        if not _same_registers(type_.elem, required):
            raise ConstraintError(f"{self}: {role} must hold {shown(required)}, not {shown(type_.elem)}")
        values = product(tv[1].shape)
        if len(layout) != 3 or product(layout[0].shape) != values:
            raise ConstraintError(
                f"{self}: each thread holds {values} values of one {role}, but mode 0 of the fragment {layout} has "
                f"{product(layout[0].shape)}: partition the tensor with this atom's TiledMma"
            )
        last = offset + max(static_offsets(layout))
        if last >= type_.n:
            raise ConstraintError(f"{self}: {role} {layout} reaches register {last} of a fragment of {type_.n}")
        self._verify_packing(role, layout, offset, required)

    def _verify_packing(self, role: str, layout: Layout, offset: int, type_: ScalarType) -> None:
        """Values narrower than a 32-bit register must be side by side."""
        per = 32 // type_.width if 8 <= type_.width < 32 else 1
        if per == 1:
            return
        values = product(layout[0].shape)
        if values % per:
            return
        where = [offset + register for register in static_offsets(layout)]
        for first in range(0, len(where), per):
            together = where[first : first + per]
            if together[0] % per == 0 and together == list(range(together[0], together[0] + per)):
                continue
            value = first % values
            raise ConstraintError(
                f"{self}: one 32-bit register of {role} holds {per} {shown(type_)} side by side, but in the fragment "
                f"{layout} values V{value}..V{value + per - 1} are the elements "
                f"{together}: make the fragment with make_fragment_{role}"
            )

    def count(self, op: Op) -> int:
        d, a = op.attrs["d_layout"], op.attrs["a_layout"]
        return int(product(d[1].shape) * product(d[2].shape) * product(a[2].shape))

    # -- action --------------------------------------------------------------------------------------------------

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        self.simulate_run(lanes, [op], operands)
        return ()

    def simulate_run(self, lanes: Lanes, ops: list[Op], operands: list[Any]) -> None:
        """Several calls with the same fragments and the same accumulators, one after the other: ``K`` is that of all of
        them."""
        d, a, b = operands
        attrs = ops[0].attrs
        plan = make_plan(
            self, attrs["d_layout"], attrs["d_offset"], call_layouts(ops), d.shape[1], a.shape[1], b.shape[1]
        )
        warps = d.shape[0] // 32
        d2, a2, b2 = (x.reshape(warps, -1) for x in (d, a, b))
        chosen = active_warps(lanes, self)
        if chosen is None:
            self.accumulate(d2, a2, b2, plan)
        else:
            part = d2[chosen]
            self.accumulate(part, a2[chosen], b2[chosen], plan)
            d2[chosen] = part

    def accumulate(self, d: Array, a: Array, b: Array, plan: MatrixIndices) -> None:
        """``d += a * b`` on ``[warps, 32 * registers]`` arrays: gather both, multiply, scatter."""
        raise NotImplementedError


class DescriptorMma(Mma):
    """A matrix instruction that names operands in shared memory by descriptors; ``majors`` are A's and B's."""

    majors: tuple[str, str]

    def major_of(self, operand: str) -> str:
        return self.majors["AB".index(operand)]


def _same_registers(held: ScalarType, required: ScalarType) -> bool:
    """float32 registers serve as tf32, and integers of one width as each other (a recast view of them)."""
    return held == required or {held, required} == {F32, TF32} or (held.is_integer and held.width == required.width)


def active_warps(lanes: Lanes, atom: Instruction) -> Array | None:
    """None when every warp is active, else ``bool [warps]``; an error when a warp is only partly active."""
    mask = lanes.mask
    if mask is None:
        return None
    by_warp = mask.reshape(-1, 32)
    some, every = by_warp.any(axis=1), by_warp.all(axis=1)
    if (some != every).any():
        warp = int((some != every).argmax())
        raise lanes.fault(
            f"{atom.mnemonic()}: only lanes {by_warp[warp].nonzero()[0].tolist()} of a warp execute it, "
            "but all 32 lanes of a warp must",
            mask & np.repeat(np.arange(by_warp.shape[0]) == warp, 32),
            "move it out of the divergent branch",
        )
    return None if bool(every.all()) else np.asarray(every)


CallLayouts = tuple[tuple[Layout, int, Layout, int], ...]
"""The layout and offset of A, and of B, in their fragments, for each of several calls."""


def call_layouts(ops: Sequence[Op]) -> CallLayouts:
    return tuple([(o.attrs["a_layout"], o.attrs["a_offset"], o.attrs["b_layout"], o.attrs["b_offset"]) for o in ops])


@lru_cache(maxsize=2048)
def make_plan(
    atom: Mma,
    d_layout: Layout,
    d_offset: int,
    calls: CallLayouts,
    d_registers: int,
    a_registers: int,
    b_registers: int,
) -> MatrixIndices:
    """The indices of some calls. They depend on static data only, so that all of them cost one gather an operand."""
    m, n, k = atom.shape_mnk
    a = [operand_index(atom, atom.layout_a, m, atom.stored_k, a, at, a_registers) for a, at, _, _ in calls]
    b = [operand_index(atom, atom.layout_b, n, k, b, at, b_registers) for _, _, b, at in calls]
    d = operand_index(atom, atom.layout_c, m, n, d_layout, d_offset, d_registers)
    scatter = None
    if d.size == 32 * d_registers:
        order = np.empty(d.size, dtype=np.intp)
        order[d.reshape(-1)] = np.arange(d.size)
        scatter = neighbours(order)
    steps = sum(product(a_layout[2].shape) for a_layout, *_ in calls)
    return MatrixIndices(
        neighbours(np.concatenate(a, axis=2)), neighbours(np.concatenate(b, axis=2)), d, scatter, steps
    )


def neighbours(index: Array) -> Gather:
    """Pairs, and pairs of pairs, that are neighbours in the registers and in the matrix are moved as one item."""
    per = 1
    while per < 4 and not index.shape[-1] % 2:
        first = index[..., 0::2]
        if (first % 2).any() or (index[..., 1::2] != first + 1).any():
            break
        index, per = first // 2, 2 * per
    return Gather(np.ascontiguousarray(index), per)


def gather(purpose: str, registers: Array, where: Gather) -> Array:
    """``[warps, ...]`` the registers in the order of ``where``; valid until the next request for the same purpose."""
    from tilewright.atoms.scratch import scratch

    width = registers.itemsize * where.per
    items = registers if where.per == 1 or width > 8 else registers.view(f"u{width}")
    index = where.items
    if items is registers and where.per > 1:
        index = (index[..., None] * where.per + range(where.per)).reshape(*index.shape[:-1], -1)
    out = scratch(purpose, (len(registers), *index.shape), items.dtype)
    gathered: Array = items.take(index, axis=1, out=out, mode="clip").view(registers.dtype)
    return gathered


def operand_index(atom: Mma, tv: Layout, rows: int, columns: int, registers: Layout, offset: int, count: int) -> Array:
    """``[G, rest0 * rows, rest1 * columns]``: where in a warp's ``32 * count`` registers each matrix element is."""
    from tilewright.atoms.tables import lanes_of, offsets, owners

    thread, value = owners(tv, rows, columns)
    lane = lanes_of(atom.thr_id)[:, thread]
    inside = lane * count + offset + offsets(registers[0])[value]
    rest0, rest1 = offsets(registers[1]), offsets(registers[2])
    index = inside[:, None, :, None, :] + rest0[None, :, None, None, None] + rest1[None, None, None, :, None]
    return index.reshape(len(lane), rest0.size * rows, rest1.size * columns)
