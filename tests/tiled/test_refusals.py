"""What copies and products inside a kernel refuse while it is staged, and what is just inside of that."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import half_mma, run, universal
from tilewright import cute
from tilewright.atoms.universal import UniversalCopy
from tilewright.cute import nvgpu
from tilewright.cute.nvgpu import cpasync
from tilewright.errors import ConstraintError
from tilewright.layout import Swizzle
from tilewright.tiled.tma.atom import TmaCopyAtom
from tilewright.tiled.tma.plan import plan_of

F16, F32, BOOL = cutlass.Float16, cutlass.Float32, cutlass.Boolean


def registers(shape: Any, dtype: Any = F32) -> Any:
    return cute.make_rmem_tensor(shape, dtype)


def bulk(x: Any, y: Any, **options: Any) -> None:
    load = nvgpu.cpasync.CopyBulkG2SOp()
    cute.copy(cute.make_copy_atom(load, F32), x, y, **options)


def barrier() -> Any:
    return cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)


def row(n: int = 32, dtype: Any = F32, swizzle: Any = None) -> Any:
    memory = cutlass.utils.SmemAllocator()
    return memory.allocate_tensor(dtype, cute.make_layout(n), 1024, swizzle=swizzle)


def product(c: Any, d: Any = None, a: Any = None) -> None:
    mma = half_mma()
    values = [registers(shape, F16) for shape in (((2, 2, 2), 1, 1), ((2, 2), 1, 1))]
    cute.gemm(mma, c if d is None else d, values[0] if a is None else a, values[1], c)


ACC = ((2, 2), 1, 1)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        # bulk copies
        ("the extents of", lambda t, x, n: bulk(x[None, 0], cute.make_tensor(row().iterator, cute.make_layout(n[0])),
                                                mbar_ptr=barrier())),
        ("copies contiguous memory",
         lambda t, x, n: bulk(x[0, None], row(32, F32, Swizzle(2, 4, 3)), mbar_ptr=barrier())),
        ("copies contiguous memory", lambda t, x, n: bulk(x[0, None], registers(32), mbar_ptr=barrier())),
        ("was made for f32, not for Float16", lambda t, x, n: bulk(x[0, None], row(32, F16), mbar_ptr=barrier())),
        ("differ in size", lambda t, x, n: bulk(x[0, None], row(16), mbar_ptr=barrier())),
        ("completes on an mbarrier", lambda t, x, n: bulk(x[0, None], row())),
        ("takes no mcast_mask", lambda t, x, n: bulk(x[0, None], row(), mbar_ptr=barrier(), mcast_mask=3)),
        # copies by threads
        ("differ in size", lambda t, x, n: cute.basic_copy(registers(4), registers(3))),
        ("differ in size", lambda t, x, n: cute.basic_copy_if(registers(4, BOOL), registers(4), registers(3))),
        ("differ in size", lambda t, x, n: cute.basic_copy_if(registers(3, BOOL), registers(4), registers(4))),
        ("cannot convert Float32 to Float16 between memories",
         lambda t, x, n: cute.basic_copy_if(registers(32, BOOL), x[0, None], row(32, F16))),
        ("elements of 4 bits share bytes", lambda t, x, n: cute.basic_copy_if(
            registers(4, BOOL), registers(4, cutlass.Int4), registers(4, cutlass.Int4))),
        ("a thread's elements of 4 bits are not side by side", lambda t, x, n: cute.copy(
            universal(8, cutlass.Int4), registers(4, cutlass.Int4), cute.make_tensor(
                row(64, cutlass.Int4).iterator + t, cute.make_layout(4, stride=8)))),
        ("one call moves 4 x f32", lambda t, x, n: cute.copy_atom_call(universal(128, F32), x[0, None], registers(32))),
        ("one call moves 4 x f32",
         lambda t, x, n: cute.copy_atom_call(universal(128, F32), cute.make_tensor(x.iterator, 4), registers(2))),
        ("takes a copy atom first", lambda t, x, n: cute.copy(None, x, x)),
        ("the source must be a tensor", lambda t, x, n: cute.copy(universal(32, F32), 1, x)),
        ("the destination must be a tensor", lambda t, x, n: cute.copy(universal(32, F32), x, x.iterator)),
        ("takes no mcast_mask", lambda t, x, n: cute.copy(universal(32, F32), x, x, mcast_mask=1)),
        ("the modes do not match",
         lambda t, x, n: cute.copy(universal(32, F32), registers((1, 2, 2)), registers((1, 4)))),
        ("was made for elements of f32",
         lambda t, x, n: cute.copy(universal(32, F32), registers(2, F16), registers(2, F16))),
        ("copies f32 to f16 without converting",
         lambda t, x, n: cute.copy(universal(16, F16), registers(2), registers(2, F16))),
        # products
        ("differ in shape", lambda t, x, n: product(registers(ACC), registers(((2, 2), 2, 1)))),
        ("has 4 modes; gemm takes", lambda t, x, n: product(registers((*ACC, 1)))),
        ("must be a tensor with a plain layout", lambda t, x, n: product(None)),
        ("must be in registers (or shared memory), not in gmem: copy the part of the thread",
         lambda t, x, n: product(registers(ACC), a=x)),
        ("D (32,4,1):(4,1,0) must be in registers", lambda t, x, n: product(x)),
        ("A is a view of 32-bit registers",
         lambda t, x, n: product(registers(ACC), a=cute.recast_tensor(registers(((1, 2, 2), 1, 1)), F16))),
        ("is indexed at run time", lambda t, x, n: product(registers((*ACC, 2))[None, None, None, n[0]])),
    ],
)  # fmt: skip
def test_refusals(text: str, body: Callable[..., Any]) -> None:
    with pytest.raises(ConstraintError, match=re.escape(text)):
        run(body, np.zeros((32, 4) if "32,4" in text else (4, 32), np.float32), np.ones(1, np.int32), threads=32)


def test_modes_of_one_copy_need_no_partner() -> None:
    def body(t: Any, x: Any, y: Any) -> None:
        some = registers((1, 1, 4))
        cute.copy(universal(32, F32), cute.make_tensor(x.iterator, cute.make_layout((1, 4, 1))), some)
        cute.copy(universal(32, F32), some, cute.make_tensor(y.iterator, cute.make_layout((1, 1, 1, 4))))

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    run(body, x, y, threads=1)
    assert (x == y).all()


def made(make: Callable[[Any], Any], dtype: Any = np.float16) -> Any:
    """What ``make`` gives of a tensor of 64 x 64 on the host."""
    found = []

    @cute.jit
    def host(x: cute.Tensor) -> None:
        found.append(make(x))

    host(cute.runtime.from_dlpack(np.zeros((64, 64), dtype), assumed_align=16))
    return found[0]


TILE = cute.make_layout((64, 64), stride=(64, 1))


def atom(x: Any, number: Any = 1, op: Any = None, **options: Any) -> Any:
    op = op or cpasync.CopyBulkTensorTileG2SMulticastOp()
    return cpasync.make_tiled_tma_atom(op, x, TILE, (64, 64), num_multicast=number, **options)


@pytest.mark.parametrize("number", [0, 17, 1.0, "2", None])
def test_numbers_of_blocks_that_a_multicast_cannot_have(number: Any) -> None:
    with pytest.raises(ConstraintError, match=f"num_multicast={number!r} is not a number of blocks"):
        made(lambda x: atom(x, number))
    assert made(lambda x: [atom(x, n) for n in (1, 16)])


def test_tensor_map_refuses_layouts_it_cannot_describe() -> None:
    with pytest.raises(ConstraintError, match="takes a tensor in global memory, not"):
        made(lambda x: atom(x.layout))
    with pytest.raises(ConstraintError, match="takes a tensor in global memory, not"):
        made(lambda x: atom(cute.make_identity_tensor((64, 64))))


def test_operands_of_an_mma_for_one_block_and_for_a_cluster() -> None:
    mma = cute.make_tiled_mma(
        nvgpu.warpgroup.MmaF16BF16Op(
            F16,
            F32,
            (64, 64, 16),
            nvgpu.warpgroup.OperandSource.SMEM,
            nvgpu.OperandMajorMode.K,
            nvgpu.OperandMajorMode.K,
        )
    )

    def boxes(x: Any, op: Any, cluster: Any) -> list[Any]:
        makers = nvgpu.make_tiled_tma_atom_A, nvgpu.make_tiled_tma_atom_B
        return [make(op, x, TILE, (64, 64, 64), mma, cluster)[0].plan.num_multicast for make in makers]

    multicast, single = cpasync.CopyBulkTensorTileG2SMulticastOp(), cpasync.CopyBulkTensorTileG2SOp()
    cluster = cute.make_layout((1, 2, 4, 1))
    for op, given, want in (
        (multicast, None, [1, 1]),
        (multicast, cluster, [4, 2]),
        (multicast, (1, 2, 4, 1), [4, 2]),
        (single, cluster, [1, 1]),
        (single, None, [1, 1]),
    ):
        assert made(lambda x, op=op, given=given: boxes(x, op, given)) == want
    for text, tiled, tiler in (("takes a tiled MMA", None, (64, 64, 64)), ("the tiler is (M, N, K)", mma, (64, 64))):
        with pytest.raises(ConstraintError, match=re.escape(text)):
            made(lambda x, t=tiled, n=tiler: nvgpu.make_tiled_tma_atom_A(single, x, TILE, n, t))


PLAN = {
    "box": ((64, 8), (64, 4)),
    "element": (F16.ir_type, F32.ir_type),
    "swizzle": (3, 2),
    "num_multicast": (1, 2),
    "tiler": ((8, 64), (4, 64)),
    "basis": (1, 2),
    "values": (None, 1),
}
OTHERS = {"op": ("load", "store"), "instruction": (UniversalCopy(32), UniversalCopy(64)), "value_type": (F16, F32)}


@pytest.mark.parametrize("name", [*PLAN, *OTHERS])
def test_key_of_tma_atoms_has_each_component(name: str) -> None:
    """Kernels are staged for the atoms that they take, so two that differ in one respect are not one."""

    def atom(changed: str = "") -> TmaCopyAtom:
        given: Any = {key: both[key == changed] for key, both in {**PLAN, **OTHERS}.items()}
        plan: Any = SimpleNamespace(**{key: given[key] for key in PLAN})
        return TmaCopyAtom(given["op"], given["instruction"], given["value_type"], plan, given)

    other = atom(name)
    assert atom() == atom() and hash(atom()) == hash(atom()) and atom().__carry_key__() == atom().__carry_key__()
    assert atom() != other and atom().__carry_key__() != other.__carry_key__()


@pytest.mark.parametrize(
    ("stride", "contiguous"), [((64, 1), [True, False]), ((1, 64), [True, False]), ((128, 1), [True, False])]
)
def test_the_contiguous_mode_of_a_map_is_the_one_of_stride_1(stride: Any, contiguous: list[bool]) -> None:
    smem = cute.make_layout((8, 64), stride=(64, 1) if stride[1] == 1 else (1, 8))
    plan = plan_of(cute.make_layout((64, 64), stride=stride), smem, (8, 64), F16.ir_type, F16.ir_type, 1)
    assert [part.contiguous for (part,) in plan.template().modes] == contiguous
