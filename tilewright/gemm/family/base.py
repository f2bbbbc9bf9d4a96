"""The interface of a kernel family, and the answers that most families share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.accesses import OperandAccess, ProductOperands, access_refusal
from tilewright.gemm.family.estimate import CostModel
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.gemm.schedule.sm90_streamk import StreamKScheduleSm90
from tilewright.gemm.schedule.splitk import SplitK
from tilewright.gemm.schedule.streamk import StreamK

FAMILIES: dict[str, KernelFamily] = {}
"""The families by the ``math`` of their configurations."""


def family_of(config: AnyConfig) -> KernelFamily:
    return FAMILIES[config.math]


def kernel_of(config: AnyConfig) -> Any:
    """The kernel of a configuration, to be called or compiled."""
    return family_of(config).kernel(config)


class KernelFamily(ABC):
    """A kind of kernel; a configuration gives its static numbers. Methods that return text give the reason of a
    refusal, None where there is nothing to refuse."""

    model: ClassVar[type[CostModel]]
    """Estimates the time of all sizes of a kernel at once."""
    parts: ClassVar[tuple[int, ...]] = ()
    """Into how many equal parts the model may cut each tile along K."""
    built_for: ClassVar[int] = 90
    """The compute capability that the kernels are compiled for, and their sizes made for, where nothing else is
    said."""
    takes_shares: ClassVar[bool] = True
    """Whether blocks can share tiles by a plan that the user gives."""
    splits_in_clusters: ClassVar[bool] = False
    """Whether the blocks of a cluster can share the k tiles of a tile."""
    whole_rows: ClassVar[bool] = True
    """Whether the rows of A and B have to be whole accesses long."""
    mixes_types: ClassVar[bool] = False
    """Whether 8-bit floats of one kind can be multiplied by those of the other."""
    packs: ClassVar[bool] = False
    """Whether copies to aligned rows are worth their time for operands that the kernel cannot take."""
    grouped: ClassVar[Any] = None
    """The :class:`~tilewright.gemm.family.grouped.GroupedFamily` of the same kernels, where there is one."""

    @abstractmethod
    def kernel(self, config: AnyConfig) -> Any:
        """The kernel, called with (mA, mB, mC, mD, epilogue function, decomposition)."""

    def tensors(self, config: AnyConfig, A: Any, B: Any, *results: Any) -> tuple[Any, ...]:
        """The kernel's arguments for matrices A (M, K, L), B (N, K, L), and C and D (M, N, L)."""
        loaded = A.tensor(config.a, self.whole_rows), B.tensor(config.b, self.whole_rows)
        return *loaded, *[matrix.tensor(config.c) for matrix in results]

    def stand_in(self, config: AnyConfig, matrix: Matrix) -> Matrix:
        """A matrix A of zeros as the kernel takes it, where it is staged without operands."""
        return matrix

    def min_arch(self, config: AnyConfig) -> int:
        """The least compute capability, 80 for sm_80."""
        return 80

    def with_block_scales(
        self, config: AnyConfig, rows: int | None, columns: int | None, smem: int
    ) -> AnyConfig | None:
        """This size as it multiplies the sums of each k tile by scales of blocks, of ``rows`` of A and ``columns`` of
        B, with ``smem`` bytes of shared memory; None if it cannot."""
        return None

    def writes(self, config: AnyConfig) -> bool:
        """Whether this size, for the operands that it has, can write its part of D at once."""
        return True

    def epilogue_shows(self, problem: Problem, limits: Limits) -> bool:
        """Whether an epilogue of many instructions takes longer than the main loop can hide, so that sizes that hide it
        pay off."""
        return False

    def hides_epilogue(self, config: AnyConfig) -> bool:
        """Whether this size runs epilogues beside main loops and has registers left for them."""
        return False

    def buffered(self, config: AnyConfig, smem: int) -> AnyConfig:
        """``config`` with more buffers for the epilogue, if ``smem`` bytes of shared memory have room for them. The
        operands of ``config`` are set already."""
        return config

    def simulated_rate(self, config: AnyConfig) -> float:
        """Multiply-adds a second of the simulator for large products, on a core of a server, with the default
        checks."""
        return 0.4e9

    def piece_costs(self, config: AnyConfig, smem: int, several: bool) -> tuple[float, float, float]:
        """Microseconds of a k tile, of handing over a tile's sums, and of writing a tile; ``several``: blocks on one
        multiprocessor."""
        raise NotImplementedError

    def arch_refusal(self, config: AnyConfig, version: int) -> str | None:
        """Why GPUs of compute capability ``version`` cannot run the kernel."""
        least = self.min_arch(config)
        if version >= least:
            return None
        return f"its mma.sync needs sm_{least}, and sm_{version} has none for {config.a.dtype.__name__}"

    def accesses(self, config: AnyConfig, product: ProductOperands) -> list[OperandAccess]:
        """What the kernel's loaders and its epilogue assume of the operands. Operands without assumptions are not
        listed."""
        return []

    def types_refusal(self, config: AnyConfig, product: ProductOperands) -> str | None:
        """Why the kernel cannot multiply operands of these types with each other."""
        a, b = product.A.dtype, product.B.dtype
        if a is b or self.mixes_types:
            return None
        return f"its instructions multiply operands of one type, not {a.__name__} by {b.__name__}"

    def product_refusal(self, config: AnyConfig, product: ProductOperands, decomposition: Any) -> str | None:
        """Why the kernel cannot multiply operands of these extents, by this decomposition."""
        return None

    def may_share(self, config: AnyConfig) -> bool:
        """Whether single blocks of this size can share tiles as Stream-K does."""
        return True

    def joined_sizes(self, config: AnyConfig) -> Iterable[AnyConfig]:
        """This size with blocks that reduce the sums of shared tiles together."""
        return ()

    def in_clusters(self, config: AnyConfig, slices: int) -> AnyConfig:
        """This size with clusters of ``slices`` blocks that share the k tiles of a tile; for families whose blocks form
        clusters."""
        raise NotImplementedError

    def sharing_refusal(self, sizes: Iterable[AnyConfig]) -> str | None:
        """Why no size of a kernel can share tiles."""
        return None

    def refusal(
        self,
        sizes: tuple[AnyConfig, ...],
        product: ProductOperands,
        decomposition: Any,
        version: int,
        reduction: str | None = None,
    ) -> str | None:
        """Why a kernel, in the first of its ``sizes``, cannot multiply these operands on such a GPU; None where it
        can."""
        config = sizes[0]
        return (
            self.decomposition_refusal(sizes, product, decomposition, reduction)
            or self.arch_refusal(config, version)
            or self.types_refusal(config, product)
            or self.product_refusal(config, product, decomposition)
            or access_refusal(self.accesses(config, product))
        )

    def decomposition_refusal(
        self, sizes: tuple[AnyConfig, ...], product: ProductOperands, decomposition: Any, reduction: str | None
    ) -> str | None:
        """Why the kernel's blocks cannot divide the work in this way."""
        config = sizes[0]
        planned = reduction is None and isinstance(decomposition, StreamK) and decomposition.shared_reduction
        if (reduction == "shared" or planned) and not config.persistent:
            return (
                "its blocks need not run at once, as those that wait for each other must (reduction 'shared'): "
                "persistent blocks of Hopper kernels do"
            )
        if isinstance(decomposition, SplitK):
            if product.shape[3] != 1:
                return f"split-K is for a single product, not for a batch of {product.shape[3]}"
            if decomposition.mode == "cluster" and not self.splits_in_clusters:
                return "its blocks do not share k tiles in clusters: split-K of mode 'cluster' wants a Hopper kernel"
        if isinstance(decomposition, StreamKScheduleSm90) and not config.persistent:
            return "the schedule is for persistent blocks: Hopper kernels have them"
        if decomposition == "dynamic" and not config.producers:
            return "its blocks have no warp that could draw tiles for the others: warp-specialised Hopper kernels have"
        return self.sharing_refusal(sizes) if decomposition == "stream_k" else None
