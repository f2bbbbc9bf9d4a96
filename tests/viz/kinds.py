"""A picture of every kind, for tests of what all of them must keep."""

from __future__ import annotations

from functools import cache

import numpy as np

from tilewright import Float16, Float32, cute
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.mma_sync_table import MMA_SYNC
from tilewright.atoms.names import copy_by_name, mma_by_name
from tilewright.atoms.tcgen05_names import EXAMPLES
from tilewright.cute.nvgpu import CopyUniversalOp, warpgroup
from tilewright.gemm.schedule.gantt import BlockSpan, Schedule
from tilewright.ir.types import F16
from tilewright.layout import ComposedLayout, Layout, Swizzle, parse, raked_product
from tilewright.sim import Trace
from tilewright.sim.tracing import Arrow, LaunchRecord
from tilewright.sim.tracing import Span as Traced
from tilewright.tiled import make_copy_atom, make_tiled_copy_A, make_tiled_copy_C, make_tiled_copy_tv, make_tiled_mma
from tilewright.viz import (
    Figure,
    Timeline,
    bank_figure,
    cluster_figure,
    complement_figure,
    composition_figure,
    copy_atom_figure,
    divide_figure,
    gantt,
    layout_figure,
    layout_slice_figure,
    mma_atom_figure,
    product_figure,
    raster_figure,
    retile_figure,
    scale_factors_figure,
    streamk_plan_figure,
    swizzle_bits_figure,
    swizzle_figure,
    tensor_figure,
    tensor_memory_figure,
    tiled_copy_figure,
    tiled_mma_figure,
    timeline,
    tma_box_figure,
    tv_figure,
)
from tilewright.viz.gantt_chart import COLOURS

ATOM = MMA_SYNC["SM80_16x8x16_F32F16F16F32_TN"]
SWIZZLED = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


@cache
def tiled_mma() -> object:
    return make_tiled_mma(ATOM, (2, 2, 1), (32, 32, 16))


@cache
def hopper_mma() -> object:
    major = warpgroup.OperandMajorMode.K
    op = warpgroup.MmaTF32Op(Float32, (64, 16, 8), warpgroup.OperandSource.SMEM, major, major)
    return make_tiled_mma(op, (2, 1, 1))


@cache
def tiled_copy() -> object:
    atom = make_copy_atom(CopyUniversalOp(), Float32, num_bits_per_copy=128)
    return make_tiled_copy_tv(atom, Layout((16, 8), (8, 1)), Layout((1, 4)))


def retile() -> Figure:
    mma = make_tiled_mma(ATOM, permutation_mnk=(16, 16, 16))
    store = make_tiled_copy_C(make_copy_atom(CopyUniversalOp(), Float32, num_bits_per_copy=64), mma)
    return retile_figure(store, mma, "C", thread=5)


def trace() -> Trace:
    spans = [Traced("wait", 0, 0, 4, 0, 320, "full[0]", 0), Traced("run", 0, 0, 4, 320, 500)]
    spans += [Traced("load", 0, 0, 0, 100 + 8 * n, 300 + 8 * n, "tma.load.2d", n % 12, bytes=4096) for n in range(14)]
    spans += [Traced("wgmma", 0, 0, 4, 350, 450, "wgmma", 0), Traced("run", 0, 0, 0, 0, 100)]
    arrows = [Arrow(0, "load", 0, 0, 300, 0, 4, 320, "full[0]", 0)]
    return Trace([LaunchRecord("kernel", (1, 1, 1), (256, 1, 1), 0, 500)], spans, arrows, {(0, 0, 0): "loads"})


def schedules() -> Timeline:
    spans = [BlockSpan(kind, n, n, n, 0, 10.0 * n, 10.0 * n + 9, 4) for n, kind in enumerate(COLOURS)]
    return gantt([("one", Schedule(tuple(spans), (), len(spans), 1, 70.0))])


PICTURES = {
    "layout": lambda: layout_figure(Layout((4, 8), (8, 1))),
    "nested layout": lambda: layout_figure(parse("((2,2,2),(1,4)):((1,6,2),(2,12))")),
    "flat layout": lambda: layout_figure(parse("((2,2),(3,4)):((1,6),(2,12))"), flatten_hierarchical=True),
    "coordinates": lambda: layout_figure(parse("((2,2),(4,2)):((1,8),(2,16))"), show=("index", "offset", "coordinate")),
    "slices": lambda: layout_figure(Layout((4, 3, 6))),
    "slice": lambda: layout_slice_figure(Layout((8, 8)), (slice(2, 5), None)),
    "banks of a layout": lambda: layout_figure(Layout((8, 32), (33, 1)), color_by="bank", element_bits=32),
    "large layout": lambda: layout_figure(Layout((1024, 1024))),
    "swizzle": lambda: swizzle_figure(ComposedLayout(Swizzle(4, 0, 4), 0, Layout((32, 16), (16, 1)))),
    "wide swizzle": lambda: swizzle_figure(ComposedLayout(Swizzle(3, 2, 3), 0, Layout((8, 64), (64, 1)))),
    "banks": lambda: bank_figure(SWIZZLED, 16, vector=8, access=Layout((8, 8), (1, 8))),
    "unaligned banks": lambda: bank_figure(Layout((8, 64), (66, 1)), 16, vector=8),
    "thread values": lambda: tv_figure(parse("((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"), (64, 16)),
    "by value": lambda: mma_atom_figure(ATOM, color_by="value"),
    "mma atom": lambda: mma_atom_figure(ATOM),
    "tiled mma": lambda: tiled_mma_figure(tiled_mma()),
    "repeated mma": lambda: tiled_mma_figure(tiled_mma(), (32, 64, 16), color_by="warp"),
    "wgmma": lambda: tiled_mma_figure(hopper_mma()),
    "copy atom": lambda: copy_atom_figure(COPIES["SM75_U32x4_LDSM_N"]),
    "tiled copy": lambda: tiled_copy_figure(tiled_copy()),
    "one thread": lambda: tiled_copy_figure(tiled_copy(), thread=37),
    "ldmatrix": lambda: tiled_copy_figure(
        make_tiled_copy_A(make_copy_atom(COPIES["SM75_U32x4_LDSM_N"], Float16), tiled_mma())
    ),
    "composition": lambda: composition_figure(parse("(6,2):(8,2)"), parse("(4,3):(3,1)")),
    "divide": lambda: divide_figure(parse("(6,8):(8,1)"), (parse("3:2"), parse("(2,2):(1,4)"))),
    "retile": retile,
    "raster": lambda: raster_figure("grouped_n", (12, 16), group=4, concurrent=3),
    "tensor": lambda: tensor_figure(np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)),
    "not finite": lambda: tensor_figure(np.array([[1.0, np.inf], [np.nan, -2.5]], np.float32)),
    "coordinate tensor": lambda: tensor_figure(cute.make_identity_tensor((4, 6))),
    "bits of a swizzle": lambda: swizzle_bits_figure(Swizzle(3, 3, 3), 0b101_011_010),
    "cluster": lambda: cluster_figure((2, 4), (1, 2)),
    "complement": lambda: complement_figure(Layout((2, 2), (1, 6)), 24),
    "product": lambda: product_figure(Layout((2, 2), (2, 1)), Layout((2, 3)), raked_product),
    "TMA box": lambda: tma_box_figure(Layout((100, 72), (72, 1)), (16, 64), (92, 32), F16, swizzle=128),
    "plan": lambda: streamk_plan_figure(150, 32, 108, 2),
    "operands of a pair": lambda: mma_atom_figure(mma_by_name(EXAMPLES[2])),
    "tensor memory": lambda: tensor_memory_figure(mma_by_name(EXAMPLES[0]), copy_by_name("SM100_TMEM_LOAD_16x256b2x")),
    "scale factors": lambda: scale_factors_figure(mma_by_name(EXAMPLES[4]), "B", 128),
    "timeline": lambda: timeline(trace()),
    "stalls": lambda: timeline(trace(), stalls=True),
    "schedules": schedules,
}


@cache
def picture(name: str) -> Figure | Timeline:
    """The picture of one kind, drawn once for all tests."""
    return PICTURES[name]()


@cache
def svg(name: str) -> str:
    """The text of a picture, written once for all tests."""
    return picture(name).svg()
