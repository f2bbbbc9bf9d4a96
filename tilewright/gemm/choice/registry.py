"""The kernels of the library by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from tilewright import BFloat16, Float8E4M3FN, Float8E5M2, Float16, Float32, Float64, Int8, Int32, TFloat32
from tilewright.atoms.sparsity import word_k
from tilewright.errors import ArgumentError
from tilewright.gemm.config import GemmConfig, Major, Operand, SparseGemmConfig, SparseHopperConfig
from tilewright.gemm.family.blackwell_sizes import blackwell_sizes
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.hopper_sizes import hopper_sizes, promoted_sizes
from tilewright.gemm.family.mixed_sizes import mixed_sizes
from tilewright.gemm.family.sm120_sizes import sm120_sizes
from tilewright.gemm.simt_config import SimtConfig
from tilewright.gemm.small_m_config import SmallMConfig


def tensorop(
    dtype: Any,
    out: Any = None,
    acc: Any = Float32,
    tile: tuple[int, int, int] = (128, 128, 32),
    warps: tuple[int, int] = (2, 2),
) -> GemmConfig:
    """Row-major A and C, row-major B where ldmatrix can transpose its elements.

    fp8 takes eight warps: sm_90 has no fp8 mma.sync, and what ptxas puts in its place needs registers of its own.
    """
    b_major = Major.MN if dtype.width == 16 else Major.K
    return GemmConfig(
        a=Operand(dtype, Major.K, 128),
        b=Operand(dtype, b_major, 128),
        c=Operand(out or dtype, Major.K, 128),
        acc_dtype=acc,
        tile=tile,
        warps=warps,
        stages=4,
    )


def large(dtype: Any, acc: Any = Float32) -> GemmConfig:
    """Eight warps on a tile twice as wide, one block a multiprocessor."""
    return replace(tensorop(dtype, acc=acc, tile=(128, 256, 32), warps=(2, 4)), stages=5, group=16)


def small(dtype: Any, acc: Any = Float32) -> tuple[GemmConfig, ...]:
    """Four warps on a quarter and a half of the usual tile, twice as deep: two blocks a multiprocessor."""
    return tuple(tensorop(dtype, acc=acc, tile=tile) for tile in ((64, 64, 64), (64, 128, 64)))


def granular(dtype: Any, acc: Any = Float32) -> tuple[GemmConfig, ...]:
    """Two stages, as registers hold the third; deep k tiles, as each waits for memory once."""
    tiles = {
        (128, 128, 64): (2, 4),
        (64, 128, 64): (2, 4),
        (64, 64, 64): (2, 2),
        (32, 64, 64): (2, 2),
        (64, 32, 64): (2, 2),
        (32, 32, 128): (2, 2),
    }
    sizes = (tensorop(dtype, acc=acc, tile=tile, warps=warps) for tile, warps in tiles.items())
    return tuple(replace(size, stages=2, granules=True) for size in sizes)


def small_m(name: str, title: str, dtype: Any) -> KernelEntry:
    """Few rows, B along K: 16 to 32 columns a block, whose eight warps share K; 8 columns where there are few."""
    a, c = Operand(dtype, Major.K, 128), Operand(dtype, Major.K, 2 * dtype.width)
    sizes = [
        SmallMConfig(a, a, c, acc_dtype=Float32, tile=(16, columns, 128), warps=(1, 8), stages=2)
        for columns in (16, 8, 32)
    ]
    return KernelEntry(name, f"{title}, at most 16 rows: mma.sync from global memory", sizes[0], small=tuple(sizes[1:]))


def simt() -> GemmConfig:
    # Row-major A needs one 4-byte cp.async an element (shared memory holds it M-major); B and C move 16 bytes at once.
    return SimtConfig(
        a=Operand(Float32, Major.K, 32),
        b=Operand(Float32, Major.MN, 128),
        c=Operand(Float32, Major.K, 128),
        acc_dtype=Float32,
        tile=(128, 128, 8),
        warps=(8, 1),
        stages=3,
    )


def four_warps(name: str, title: str, config: GemmConfig, **others: Any) -> KernelEntry:
    """A kernel of four warps a block, two blocks a multiprocessor.

    Blocks that share tiles have a multiprocessor to themselves, because there is one for each: eight warps work on a
    tile twice as deep. Narrow accesses take eight warps too, so that each thread has half of them.
    """
    bM, bN, bK = config.tile
    narrow = replace(config, warps=(2, 4))
    shared = replace(narrow, tile=(bM, bN, 2 * bK), stages=4)
    return KernelEntry(name, title, config, shared=shared, narrow=narrow, **others)


def all_sizes(name: str, title: str, dtype: Any, acc: Any = Float32) -> KernelEntry:
    config = tensorop(dtype, acc=acc)
    return four_warps(
        name,
        f"{title}: {TENSOR_CORES}",
        config,
        large=large(dtype, acc),
        small=small(dtype, acc),
        granular=granular(dtype, acc),
    )


TENSOR_CORES = "mma.sync, ldmatrix, cp.async multistage"
WGMMA = "wgmma, TMA, warp-specialised, persistent"
TCGEN05 = "tcgen05, TMA, warp-specialised, persistent"
TMA_MMA = "mma.sync, TMA, warp-specialised, persistent"


def hopper(name: str, title: str, dtype: Any, out: Any = None, acc: Any = Float32) -> KernelEntry:
    first, *others = hopper_sizes(dtype, out or dtype, acc)
    return KernelEntry(name, f"{title}: {WGMMA}", first, small=tuple(others))


def blackwell(name: str, title: str, dtype: Any, out: Any = None, acc: Any = Float32) -> KernelEntry:
    first, *others = blackwell_sizes(dtype, out or dtype, acc)
    return KernelEntry(name, f"{title}: {TCGEN05}", first, small=tuple(others))


def sm120(name: str, title: str, dtype: Any, out: Any = None, acc: Any = Float32) -> KernelEntry:
    first, *others = sm120_sizes(dtype, out or dtype, acc)
    return KernelEntry(name, f"{title}: {TMA_MMA}", first, small=tuple(others))


def promoted(name: str, title: str, dtype: Any) -> KernelEntry:
    first, *others = promoted_sizes(dtype, Float16)
    return KernelEntry(name, f"{title}, sums promoted every 128 of K: {WGMMA}", first, small=tuple(others))


def warps_of_four(name: str, title: str, dtype: Any, **how: Any) -> KernelEntry:
    return four_warps(name, title, tensorop(dtype, **how))


def one_size(name: str, title: str, dtype: Any, **how: Any) -> KernelEntry:
    return KernelEntry(name, title, simt() if dtype is Float32 else tensorop(dtype, **how))


class Kernels(Mapping[str, KernelEntry]):
    """The entries by name. One is made when it is asked for: all of them are 11,000 configurations, a quarter of a
    second, of which a program takes those of one or two dtypes."""

    def __init__(self, *rows: tuple[Callable[..., KernelEntry], str, str, Any, dict[str, Any]]) -> None:
        self.dtypes = {name: dtype for _, name, _, dtype, _ in rows}
        self._make = {name: partial(make, name, title, dtype, **how) for make, name, title, dtype, how in rows}
        self._made: dict[str, KernelEntry] = {}

    def __getitem__(self, name: str) -> KernelEntry:
        entry = self._made.get(name)
        return entry or self._made.setdefault(name, self._make[name]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __contains__(self, name: object) -> bool:
        return name in self._make

    def accepting(self, ab_dtype: Any) -> list[KernelEntry]:
        """The kernels for operands of a dtype, the best first; tf32 tensor cores read float32 arrays, too."""
        return [
            self[name] for name, dtype in self.dtypes.items() if (Float32 if dtype is TFloat32 else dtype) is ab_dtype
        ]


TF32, F64 = "fp32 arrays on tf32 tensor cores (10-bit mantissas)", "fp64 tensor cores: mma.sync 8x8x4"
FP8: dict[str, Any] = {"out": Float16, "tile": (128, 128, 64), "warps": (4, 2)}
I8: dict[str, Any] = {"out": Int32, "acc": Int32}
KERNELS = Kernels(
    (hopper, "hopper_f16", "fp16 tensor cores", Float16, {}),
    (hopper, "hopper_bf16", "bf16 tensor cores", BFloat16, {}),
    (hopper, "hopper_e4m3", "fp8 e4m3 in, fp16 out", Float8E4M3FN, {"out": Float16}),
    (hopper, "hopper_e5m2", "fp8 e5m2 in, fp16 out", Float8E5M2, {"out": Float16}),
    (hopper, "hopper_i8", "int8 in, int32 out", Int8, I8),
    (blackwell, "blackwell_f16", "fp16 tensor cores", Float16, {}),
    (blackwell, "blackwell_bf16", "bf16 tensor cores", BFloat16, {}),
    (blackwell, "blackwell_e4m3", "fp8 e4m3 in, fp16 out", Float8E4M3FN, {"out": Float16}),
    (blackwell, "blackwell_e5m2", "fp8 e5m2 in, fp16 out", Float8E5M2, {"out": Float16}),
    (blackwell, "blackwell_i8", "int8 in, int32 out", Int8, I8),
    (sm120, "sm120_f16", "fp16 tensor cores", Float16, {}),
    (sm120, "sm120_bf16", "bf16 tensor cores", BFloat16, {}),
    (sm120, "sm120_e4m3", "fp8 e4m3 in, fp16 out", Float8E4M3FN, {"out": Float16}),
    (sm120, "sm120_e5m2", "fp8 e5m2 in, fp16 out", Float8E5M2, {"out": Float16}),
    (sm120, "sm120_i8", "int8 in, int32 out", Int8, I8),
    (all_sizes, "tensorop_f16", "fp16 tensor cores", Float16, {}),
    (all_sizes, "tensorop_bf16", "bf16 tensor cores", BFloat16, {}),
    (all_sizes, "tensorop_f16_f16", "fp16 tensor cores with fp16 accumulators", Float16, {"acc": Float16}),
    (small_m, "small_m_f16", "fp16", Float16, {}),
    (small_m, "small_m_bf16", "bf16", BFloat16, {}),
    (one_size, "simt_f32", "fp32 FMA: 128x128x8 tiles, cp.async multistage", Float32, {}),
    (hopper, "hopper_tf32", TF32, TFloat32, {"out": Float32}),
    (blackwell, "blackwell_tf32", TF32, TFloat32, {"out": Float32}),
    (sm120, "sm120_tf32", TF32, TFloat32, {"out": Float32}),
    (warps_of_four, "tensorop_tf32", f"{TF32}: {TENSOR_CORES}", TFloat32, {"out": Float32, "tile": (128, 128, 16)}),
    (one_size, "tensorop_e4m3", f"fp8 e4m3 in, fp16 out: {TENSOR_CORES}", Float8E4M3FN, FP8),
    (one_size, "tensorop_e5m2", f"fp8 e5m2 in, fp16 out: {TENSOR_CORES}", Float8E5M2, FP8),
    (promoted, "hopper_e4m3_promoted", "fp8 e4m3 in, fp16 out", Float8E4M3FN, {}),
    (promoted, "hopper_e5m2_promoted", "fp8 e5m2 in, fp16 out", Float8E5M2, {}),
    (warps_of_four, "tensorop_i8", f"int8 in, int32 out: {TENSOR_CORES}", Int8, {**I8, "tile": (128, 128, 64)}),
    (warps_of_four, "tensorop_f64", F64, Float64, {"acc": Float64, "tile": (64, 64, 16)}),
)


def sparse(name: str, title: str, dtype: Any, out: Any = None, acc: Any = Float32) -> KernelEntry:
    first, *others = [
        size for size in hopper_sizes(dtype, out or dtype, acc, SparseHopperConfig) if not size.transposed
    ]
    return KernelEntry(name, f"{title}, 2:4 sparse A: wgmma.sp, TMA, persistent", first, small=tuple(others))


def sparse_tensorop(name: str, title: str, dtype: Any, out: Any = None, acc: Any = Float32) -> KernelEntry:
    """Two words of metadata along K a tile, so that one is multiplied while registers are filled with the other."""
    b_major = Major.MN if dtype.width == 16 else Major.K
    a, b, c = Operand(dtype, Major.K, 128), Operand(dtype, b_major, 128), Operand(out or dtype, Major.K, 128)
    depth = 2 * word_k(dtype.width)
    first = SparseGemmConfig(a, b, c, acc, tile=(128, 128, depth), warps=(2, 4), stages=3)
    others = replace(first, stages=2), replace(first, tile=(64, 64, depth), warps=(2, 2), stages=2)
    return KernelEntry(name, f"{title}, 2:4 sparse A: mma.sp, cp.async multistage", first, small=others)


@cache
def sparse_kernels() -> dict[str, KernelEntry]:
    """The kernels whose A is 2:4 sparse, by name: ``sparse_matmul`` chooses among these.

    >>> sparse_kernels()["hopper_sparse_f16"].title
    'fp16 tensor cores, 2:4 sparse A: wgmma.sp, TMA, persistent'
    """
    entries = (
        sparse("hopper_sparse_f16", "fp16 tensor cores", Float16),
        sparse("hopper_sparse_bf16", "bf16 tensor cores", BFloat16),
        sparse("hopper_sparse_e4m3", "fp8 e4m3 in, fp16 out", Float8E4M3FN, Float16),
        sparse("hopper_sparse_e5m2", "fp8 e5m2 in, fp16 out", Float8E5M2, Float16),
        sparse("hopper_sparse_tf32", TF32, TFloat32, Float32),
        sparse("hopper_sparse_i8", "int8 in, int32 out", Int8, Int32, Int32),
        sparse_tensorop("tensorop_sparse_f16", "fp16 tensor cores", Float16),
        sparse_tensorop("tensorop_sparse_bf16", "bf16 tensor cores", BFloat16),
        sparse_tensorop("tensorop_sparse_e4m3", "fp8 e4m3 in, fp16 out", Float8E4M3FN, Float16),
        sparse_tensorop("tensorop_sparse_e5m2", "fp8 e5m2 in, fp16 out", Float8E5M2, Float16),
        sparse_tensorop("tensorop_sparse_tf32", TF32, TFloat32, Float32),
        sparse_tensorop("tensorop_sparse_i8", "int8 in, int32 out", Int8, Int32, Int32),
    )
    return {entry.name: entry for entry in entries}


@cache
def mixed_entry(
    kind: Any, dtype: Any, out: Any = None, scale_dtype: Any = None, scale_k: int = 128, zeros: bool = False
) -> KernelEntry:
    """The kernel for a prepared weight of numbers of type ``kind`` and rows of ``dtype``: ``mixed_matmul`` takes it for
    many rows. Results and scales are of the type of the rows, of 8-bit rows BFloat16, unless it is given.

    >>> from tilewright import Int4
    >>> mixed_entry(Int4, BFloat16).title
    'Int4 weight, BFloat16 rows: wgmma with A from registers, TMA, persistent'
    """
    usual = BFloat16 if dtype.width == 8 else dtype
    first, *others = mixed_sizes(kind, dtype, out or usual, scale_dtype or usual, scale_k, zeros)
    title = f"{kind.__name__} weight, {dtype.__name__} rows: wgmma with A from registers, TMA, persistent"
    return KernelEntry(f"hopper_{kind.__name__}_{dtype.__name__}".lower(), title, first, small=tuple(others))


def kernels() -> dict[str, KernelEntry]:
    """All kernels by name.

    >>> kernels()["tensorop_f16"].title
    'fp16 tensor cores: mma.sync, ldmatrix, cp.async multistage'
    """
    return dict(KERNELS)


def candidates(ab_dtype: Any, kernel: str | KernelEntry | None) -> list[KernelEntry]:
    """The kernel of that name (or the entry itself), or all for operands of ``ab_dtype``, the best first."""
    if kernel is not None and not isinstance(kernel, str | KernelEntry):
        raise ArgumentError(f"kernel must be the name of a kernel or an entry of kernels(), got {kernel!r}")
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ArgumentError(f"there is no kernel {kernel!r}; the kernels are {', '.join(KERNELS)}")
    entry = KERNELS[kernel] if isinstance(kernel, str) else kernel
    entries = KERNELS.accepting(ab_dtype) if entry is None else [entry] if entry.accepts(ab_dtype) else []
    if entries:
        return entries
    types = sorted({dtype.__name__ for dtype in (KERNELS.dtypes.values() if entry is None else [entry.config.a.dtype])})
    who = f"kernel {entry.name}" if entry else "no kernel"
    takes = f"{who} takes {ab_dtype.__name__} operands"
    raise ArgumentError(f"{takes}; supported: {', '.join(types)}")
