"""The parameters of a GEMM kernel: tile, stages, threads, majors, dtypes and vector widths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import gcd
from typing import Any, ClassVar, Self

from tilewright import Float32
from tilewright.atoms.sparsity import SPARSITY, halves, word_k
from tilewright.errors import ConstraintError
from tilewright.ir.target import MOST_GRID, MOST_THREADS, REGISTERS, SMEM_RESERVED

RASTERS = ("m", "n", "hilbert", "identity")
"""Orders of tiles: in groups along M or along N, along the Hilbert curve, or as CUTLASS 2.x's identity threadblock
swizzle has them (``schedule.raster``)."""

LEAST_ASYNCHRONOUS = 32
"""Bits of an access from which on cp.async copies an operand to shared memory."""

Rule = tuple[bool, str]
"""Whether a rule holds for a config, and a description of the configs that the kernel takes."""


def require(kernel: str, *subjects: Iterator[Rule]) -> None:
    """ConstraintError with the first rule that does not hold. Rules are asked one after another: a later one may
    divide by what an earlier one has found to be positive."""
    for rules in subjects:
        for holds, words in rules:
            if not holds:
                raise ConstraintError(f"{kernel} takes {words}")


class Major(Enum):
    """Which mode of an operand is contiguous in memory: M or N (``MN``), or K. For C and D: M (``MN``) or N (``K``)."""

    MN = "mn"
    K = "k"


@dataclass(frozen=True)
class Operand:
    """How one matrix is laid out in global memory: its element type, its contiguous mode and the widest aligned access
    in bits. ``granules``: cp.async cannot copy its rows of K, and the loader of granules can read them."""

    dtype: Any
    major: Major
    copy_bits: int
    granules: bool = False

    @property
    def vector(self) -> int:
        """Elements of one global access."""
        return max(1, self.copy_bits // self.dtype.width)


@dataclass(frozen=True)
class GemmConfig:
    """Everything that is static about one GEMM kernel that copies tiles with cp.async and multiplies with mma.sync.

    ``tile`` is (M, N, K) of a thread block; ``stages`` the number of shared-memory buffers; ``warps`` how the tile's M
    and N are spread over warps (tensor cores) or, for SIMT, the number of warps in all. ``raster`` is the order of
    tiles, so that the blocks that run at once share operands in L2: ``group`` tiles of M ("m") or of N ("n") are walked
    together, or all tiles along the Hilbert curve ("hilbert"). ``granules``: K-major operands that cp.async cannot
    copy are still read in aligned 16 bytes, and shifted into place (``mainloop.granules`` says which).
    """

    a: Operand
    b: Operand
    c: Operand
    acc_dtype: Any
    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    group: int = 8
    raster: str = "m"
    granules: bool = False

    math: ClassVar[str] = "tensorop"
    """The name of the kernel family (``family.base.FAMILIES``)."""
    tensor_cores: ClassVar[bool] = True
    deals_by_launch: ClassVar[bool] = False
    """Whether the hardware gives blocks their next tiles (cluster launch control)."""
    persistent: ClassVar[bool] = False
    """Whether all blocks of a launch run at the same time and compute several tiles each."""
    most_batches: ClassVar[int | None] = MOST_GRID[2]
    """Most batches of one launch: a block's batch is its z in the grid."""
    # What other families choose:
    transposed: ClassVar[bool] = False
    pingpong: ClassVar[bool] = False
    producers: ClassVar[int] = 0
    cluster: ClassVar[tuple[int, int]] = (1, 1)
    cluster_k: ClassVar[int] = 1
    cluster_size: ClassVar[int] = 1

    def depth_of(self, mode: int) -> int:
        """The elements along K that a stage of A (``mode`` 0) or B (1) has."""
        return self.tile[2]

    def granular(self, operand: Operand) -> bool:
        """Whether A or B is read in granules: rows of K that cp.async cannot copy."""
        return self.granules and operand.granules

    def shared_major(self, operand: Operand) -> Major:
        """How A or B is laid out in shared memory. Where the instructions cannot read the source's major, tiles are
        turned on their way in, element by element: ldmatrix transposes 16-bit elements only."""
        return operand.major if operand.dtype.width == 16 else Major.K

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> Self:
        """This size for other operands. Tiles of A and B that must be transposed are read element by element."""
        return replace(self, a=self.loadable(a), b=self.loadable(b), c=c)

    def loadable(self, operand: Operand) -> Operand:
        """``operand`` as A or B, with the widest access with which it can be copied to shared memory."""
        turned = self.shared_major(operand) is not operand.major
        return replace(operand, copy_bits=operand.dtype.width) if turned else operand

    @property
    def ring_bytes(self) -> int:
        """Bytes of A and B in all stages."""
        bM, bN, _ = self.tile
        bits = bM * self.a.dtype.width * self.depth_of(0) + bN * self.b.dtype.width * self.depth_of(1)
        return self.stages * (bits // 8)

    @property
    def smem_bytes(self) -> int:
        """Shared memory of one block: the stages, or the epilogue's tile where that is more."""
        return max(self.ring_bytes, self.tile[0] * self.tile[1] * self.c.dtype.width // 8)

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]

    @property
    def cluster_tile(self) -> tuple[int, int, int]:
        return self.tile

    @property
    def fragments(self) -> int:
        """Steps of the instruction along N in a tile: as many reduction blocks can share one."""
        return max(1, self.tile[1] // (8 * self.warps[1]))

    def blocks_at_once(self, smem: int) -> int:
        """Thread blocks that one multiprocessor with ``smem`` bytes of shared memory holds: registers (up to 255 a
        thread), shared memory (1 KiB of it is the system's for each block) and 2048 threads allow this many."""
        registers, threads = REGISTERS // (256 * self.threads), 2 * MOST_THREADS // self.threads
        return max(1, min(registers, smem // (self.smem_bytes + SMEM_RESERVED), threads))

    def check(self) -> None:
        """Raise ConstraintError when the parameters do not fit together."""
        if min(*self.tile, *self.warps, self.group) < 1:
            sizes = f"{self.tile}, {self.warps} and {self.group}"
            raise ConstraintError(f"tile, warps and group must be positive, got {sizes}")
        if self.raster not in RASTERS:
            raise ConstraintError(f"raster must be one of {', '.join(RASTERS)}, got {self.raster!r}")
        if self.stages < 2:
            raise ConstraintError(f"a multistage GEMM needs at least 2 stages, got {self.stages}")
        for name, operand, extent in (("A", self.a, self.tile[0]), ("B", self.b, self.tile[1])):
            contiguous = self.tile[2] if operand.major is Major.K else extent
            if self.loadable(operand) != operand:
                raise ConstraintError(
                    f"{name}: {operand.major.name}-major {operand.dtype} is turned on its way to shared memory, "
                    f"element by element: copy_bits must be {operand.dtype.width}, not {operand.copy_bits}"
                )
            if contiguous % operand.vector:
                raise ConstraintError(
                    f"{name}: a tile of {contiguous} contiguous elements cannot be cut into vectors of {operand.vector}"
                )


@dataclass(frozen=True)
class SparseGemmConfig(GemmConfig):
    """A kernel of mma.sp, whose A is 2:4 sparse: half of its elements are stored, and metadata say which. K of
    ``tile`` is that of B."""

    math: ClassVar[str] = "tensorop_sparse"

    def depth_of(self, mode: int) -> int:
        return self.tile[2] if mode else self.tile[2] // SPARSITY

    def check(self) -> None:
        """ConstraintError when the parameters do not fit together."""
        (bM, _, bK), block = self.tile, word_k(self.a.dtype.width)
        fits = self.a.major is Major.K and self.a.dtype.width in (8, 16, 32) and not self.granules
        if not fits or bK % block or bK < 2 * block or bM % (16 * self.warps[0]):
            raise ConstraintError(
                f"a sparse GEMM by mma.sp takes an A of 8 to 32 bits in rows along K, a K tile in steps of {block} of "
                f"at least {2 * block}, and 16 rows for each of its warps along M; not {self.a}, tile {self.tile}, "
                f"warps {self.warps}"
            )
        super().check()


TWO_SETS = {1: 192, 2: 192, 3: 96}
"""The most registers of a thread for its sums and those of two k tiles, by the number of consumer warpgroups."""


@dataclass(frozen=True)
class HopperConfig:
    """Everything that is static about one Hopper GEMM kernel.

    ``tile`` is (M, N, K) of a thread block. ``consumers`` (m, n) warpgroups share the tile along M and N, or with
    ``pingpong`` each of two takes the whole of every other tile; one more warpgroup loads, or with ``roles="one"`` the
    first warp of those that multiply, a few k tiles ahead. ``cluster`` (m, n) blocks share their operands by multicast;
    or ``cluster_k`` blocks of a cluster share a tile's k tiles (split-K), and add up their sums through the shared
    memory of each other, every block some columns of the epilogue.
    A warpgroup writes D in parts of ``epilogue_columns`` through ``epilogue_buffers`` buffers or more. ``raster`` is
    the order of tiles: ``group`` of M ("m") or of N ("n") are walked together, or all on the Hilbert curve ("hilbert").
    ``transposed``: the kernel is given the transposed problem, B^T A^T = D^T, so that the short side of a flat product
    is the N of the instruction. ``promote``: the wgmma accumulators are added to Float32 accumulators of their own, and
    started again, every this many k tiles (0: never), as the hardware sums products of 8-bit floats with some 14 bits.
    ``block_scales`` (rows of A, columns of B): so many share a scale of 128 elements of K, which is loaded into the
    stages beside the operands.
    """

    a: Operand
    b: Operand
    c: Operand
    acc_dtype: Any
    tile: tuple[int, int, int]
    stages: int
    consumers: tuple[int, int] = (2, 1)
    cluster: tuple[int, int] = (1, 1)
    cluster_k: int = 1
    pingpong: bool = False
    promote: int = 0
    roles: str = "specialized"
    epilogue_columns: int = 64
    epilogue_buffers: int = 2
    group: int = 8
    raster: str = "m"
    transposed: bool = False
    block_scales: tuple[int, int] | None = None

    math: ClassVar[str] = "wgmma"
    sparsity: ClassVar[int] = 1
    """Elements of K of A for each that is stored."""
    tensor_cores: ClassVar[bool] = True
    deals_by_launch: ClassVar[bool] = False
    persistent: ClassVar[bool] = True
    least_columns: ClassVar[int] = 8  # of a part of the epilogue
    most_batches: ClassVar[int | None] = None
    """No limit for one launch: persistent blocks count the tiles of all batches."""

    @property
    def consumer_warps(self) -> int:
        """The warps of a cluster, without those that load operands, that need the number of the next tile."""
        scales = self.block_scales is not None  # one warp of each block loads them
        return (4 * self.warpgroups + scales) * self.cluster_size

    @property
    def warpgroups(self) -> int:
        """Warpgroups that multiply."""
        return self.consumers[0] * self.consumers[1]

    @property
    def split(self) -> tuple[int, int]:
        """The number of parts along M and N into which the warpgroups cut the tile."""
        return (1, 1) if self.pingpong else self.consumers

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of the tile that one warpgroup multiplies."""
        return self.tile[0] // self.split[0], self.tile[1] // self.split[1]

    def boxes(self, mode: int) -> int:
        """The number of TMA copies of a k tile of A (``mode`` 0) or B (1): a copy has at most 256 rows."""
        return 1 if self.tile[mode] <= 256 else self.split[mode]

    @property
    def producers(self) -> int:
        """Warpgroups that only load; they come first."""
        return 0 if self.roles == "one" else 1

    @property
    def threads(self) -> int:
        return 128 * (self.warpgroups + self.producers)

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster_k

    @property
    def cluster_tile(self) -> tuple[int, int, int]:
        """(M, N, K) of the tile that the blocks of a cluster compute together."""
        return self.tile[0] * self.cluster[0], self.tile[1] * self.cluster[1], self.tile[2]

    @property
    def parts(self) -> int:
        """Parts of the epilogue that a warpgroup writes one after the other."""
        return self.part[1] // self.epilogue_columns

    def depth(self, mode: int) -> int:
        """The elements along K that a stage of A (``mode`` 0) or B (1) has."""
        return self.tile[2] if mode else self.tile[2] // self.sparsity

    @property
    def instruction_k(self) -> int:
        """K of one wgmma: 32 bytes of A as it is stored."""
        return 256 // self.a.dtype.width * self.sparsity

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage."""
        bM, bN, _ = self.tile
        return (bM * self.a.dtype.width * self.depth(0) + bN * self.b.dtype.width * self.depth(1)) // 8

    def scale_group(self, mode: int) -> int:
        """Neighbouring rows of a tile (``mode`` 0) or columns (1) that share a scale of a stage, wherever the tile and
        a warpgroup's part of it are."""
        assert self.block_scales is not None
        return gcd(self.part[mode], self.block_scales[mode])

    @property
    def scale_bytes(self) -> int:
        """Bytes of scales of blocks in one stage, Float32."""
        if self.block_scales is None:
            return 0
        return sum(4 * self.tile[mode] // self.scale_group(mode) for mode in range(2))

    @property
    def smem_bytes(self) -> int:
        """Shared memory of one block: the stages, the epilogue's buffers, the mbarriers and their alignment."""
        stage = self.stage_bytes + self.scale_bytes
        buffers = self.epilogue_buffers * self.part[0] * self.epilogue_columns * self.c.dtype.width // 8
        return self.stages * stage + self.warpgroups * buffers + 2048

    @property
    def registers(self) -> tuple[int, int] | None:
        """The registers of each thread of a producer and of a consumer, set by setmaxnreg so that they fill the
        multiprocessor's 64 Ki. None: each thread has 255, the most that an instruction can name."""
        if not self.producers:
            return None
        return {1: None, 2: (40, 232), 3: (32, 160)}[self.warpgroups]

    @property
    def promoted_registers(self) -> int:
        """Registers of a thread for its sums, and for those that are added to them: those of 64 rows where each k
        tile's are, else those of all rows."""
        rows, columns = self.part
        return (rows + (64 if self.promote == 1 else rows)) * columns // 128

    @property
    def promotes_in_turn(self) -> bool:
        """Whether a thread has registers for the sums of two k tiles beside those that they are added to."""
        rows, columns = self.part
        return self.promote == 1 and rows == 64 and 3 * rows * columns // 128 <= TWO_SETS[self.warpgroups]

    @property
    def fragments(self) -> int:
        """The most reduction blocks that can share a tile."""
        return self.parts

    def blocks_at_once(self, smem: int) -> int:
        return 1

    def with_operands(self, a: Operand, b: Operand, c: Operand, smem: int) -> Self:
        """The same for other operands, in narrower parts of the epilogue, then fewer stages, until ``smem`` will do."""
        config = replace(self, a=a, b=b, c=c)
        while config.smem_bytes > smem and config.epilogue_columns % (2 * self.least_columns) == 0:
            config = replace(config, epilogue_columns=config.epilogue_columns // 2)
        while config.smem_bytes > smem and config.stages > 2:
            config = replace(config, stages=config.stages - 1)
        return config

    def check(self) -> None:
        """Raise ConstraintError when the parameters do not fit together."""
        require(
            "a Hopper GEMM",
            self._warpgroup_rules(),
            self._tile_rules(),
            self._sum_rules(),
            self._buffer_rules(),
            self._cluster_rules(),
            self._order_rules(),
        )

    def _warpgroup_rules(self) -> Iterator[Rule]:
        """Which warpgroups there are, and what each does."""
        yield self.roles in ("specialized", "one"), f"roles 'specialized' or 'one', not {self.roles!r}"
        loads_apart = self.producers > 0 or (self.warpgroups < 3 and not self.pingpong)
        yield loads_apart, "1 or 2 warpgroups on the same tile where these also load (roles='one')"
        positive = min(self.consumers) >= 1
        yield positive and self.warpgroups <= 3, f"1 to 3 consumer warpgroups, not {self.consumers}"
        if self.pingpong:
            yield self.warpgroups == 2, f"2 consumer warpgroups that take turns (pingpong), not {self.consumers}"
            yield (
                self.consumers == (2, 1),
                f"consumers (2, 1) where they take turns (pingpong) on whole tiles, not {self.consumers}",
            )

    def _tile_rules(self) -> Iterator[Rule]:
        """The tile is whole instructions of each warpgroup, and whole boxes of TMA."""
        (bM, bN, bK), (rows, columns) = self.tile, self.part
        yield rows * self.split[0] == bM and rows % 64 == 0, f"a multiple of 64 rows a consumer, not {bM} in all"
        yield (
            columns * self.split[1] == bN and columns % 8 == 0 and 8 <= columns <= 256,
            f"8 to 256 columns a consumer in steps of 8, not {bN} in all",
        )
        yield bM // self.boxes(0) <= 256, f"at most 256 rows a consumer, not {bM} in all"
        step = self.instruction_k
        yield bK % step == 0, f"a K tile in steps of {step} (one wgmma), not {bK}"

    def _sum_rules(self) -> Iterator[Rule]:
        """The sums fit the registers of a thread, also where they are promoted."""
        rows, columns = self.part
        yield self.promote >= 0, f"a number of k tiles after which sums are promoted, or 0, not {self.promote}"
        if self.promote:
            yield (
                self.acc_dtype is Float32 and self.producers > 0,
                "Float32 accumulators and a warpgroup that loads where sums are promoted",
            )
            yield (
                self.promoted_registers <= 192,
                f"at most 192 registers of a thread for its sums and those that are promoted, not {rows} x {columns} "
                f"with promote={self.promote}",
            )
        yield rows * columns // 128 <= 216, f"accumulators that fit a warpgroup's registers, not {rows} x {columns}"

    def _buffer_rules(self) -> Iterator[Rule]:
        """The stages of the operands and the buffers of the epilogue."""
        yield self.stages >= 2, f"at least 2 stages, not {self.stages}"
        yield self._epilogue_columns_rule()
        yield self.epilogue_buffers >= 2, f"at least 2 epilogue buffers, not {self.epilogue_buffers}"

    def _epilogue_columns_rule(self) -> Rule:
        columns = self.part[1]
        divides = self.epilogue_columns >= 1 and columns % self.epilogue_columns == 0
        return divides, f"epilogue columns that divide {columns}"

    def _cluster_rules(self) -> Iterator[Rule]:
        """The blocks of a cluster, and how they share the k tiles of one tile."""
        yield (
            min(*self.cluster, self.cluster_k) >= 1 and self.cluster_size <= 8,
            f"a cluster of 1 to 8 blocks, not {self.cluster} x {self.cluster_k}",
        )
        if self.cluster_k == 1:
            return
        yield (
            self.cluster == (1, 1) and not self.pingpong,
            "a cluster of (1, 1) and no turns (pingpong) where its blocks share the k tiles (cluster_k)",
        )
        yield (
            self.parts % self.cluster_k == 0,
            f"parts of the epilogue ({self.parts} now) that cluster_k = {self.cluster_k} blocks can share evenly: "
            "fewer epilogue_columns",
        )
        sums = self.tile[0] * self.tile[1] * self.acc_dtype.width // 8
        yield (
            self.stages * self.stage_bytes >= sums,
            f"stages that hold the {sums} bytes of a tile's sums where blocks of a cluster share its k tiles",
        )

    def _order_rules(self) -> Iterator[Rule]:
        """The order of tiles."""
        yield self.group >= 1, f"groups of at least 1 row of tiles, not {self.group}"
        yield self.raster in RASTERS, f"a raster of {', '.join(RASTERS)}, not {self.raster!r}"


@dataclass(frozen=True)
class SparseHopperConfig(HopperConfig):
    """A Hopper kernel whose A is 2:4 sparse: half of its elements are stored, and metadata say which
    (``kernel.sparse``). K of ``tile`` is that of B."""

    math: ClassVar[str] = "wgmma_sparse"
    sparsity: ClassVar[int] = SPARSITY

    @property
    def stage_bytes(self) -> int:
        """Bytes of A, B and the metadata in one stage: a bit for each element of A, or for each half of 32 bits."""
        return super().stage_bytes + self.tile[0] * self.tile[2] * halves(self.a.dtype.width) // 8

    def check(self) -> None:
        """Raise ConstraintError when the parameters do not fit together."""
        if self.a.major is not Major.K or self.a.dtype.width not in (8, 16, 32):
            raise ConstraintError(
                f"a sparse A has elements of 8 to 32 bits, in rows along K; not {self.a.dtype.__name__}, "
                f"{self.a.major.name}-major"
            )
        step = word_k(self.a.dtype.width)
        if self.tile[2] % step or not self.producers or self.promote or self.transposed or self.boxes(0) > 1:
            raise ConstraintError(
                f"a sparse Hopper GEMM takes a K tile in steps of {step}, at most 256 rows, a warpgroup that "
                "loads, no promotion of sums and no transposed product, whose A would be dense; not tile "
                f"{self.tile}, roles {self.roles!r}, promote {self.promote}, transposed {self.transposed}"
            )
        super().check()


AnyConfig = GemmConfig | HopperConfig
