"""A kernel of the library by name, with the tiles that are known to do well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from tilewright import Float32, TFloat32
from tilewright.errors import ArgumentError
from tilewright.gemm.config import AnyConfig, Operand
from tilewright.gemm.family.base import KernelFamily, family_of
from tilewright.gemm.family.compile import cross_compile, cross_print
from tilewright.gemm.family.plan_options import Limits, Problem
from tilewright.ir.target import architecture


@dataclass(frozen=True)
class KernelEntry:
    """A named kernel: its configuration for fully aligned row-major operands, and one line that describes it.

    It has other sizes for problems where they are faster: ``large`` has a bigger tile, which moves fewer bytes;
    ``small`` have smaller tiles, which finish sooner. ``shared`` replaces ``config`` where thread blocks share tiles,
    ``narrow`` where operands cannot be read 16 bytes at a time; ``granular`` are sizes for rows of K that begin at any
    element.
    """

    name: str
    title: str
    config: AnyConfig
    large: AnyConfig | None = None
    small: tuple[AnyConfig, ...] = ()
    shared: AnyConfig | None = None
    narrow: AnyConfig | None = None
    granular: tuple[AnyConfig, ...] = ()

    def __hash__(self) -> int:
        # Computed at each look-up of a choice, so it covers only the first of the many sizes, which tells most entries
        # apart.
        kept_hash: int | None = self.__dict__.get("_hash")
        if kept_hash is None:
            kept_hash = hash((self.name, self.config, len(self.small)))
            object.__setattr__(self, "_hash", kept_hash)
        return kept_hash

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def only(self, config: AnyConfig) -> KernelEntry:
        """This kernel in one size."""
        return KernelEntry(self.name, self.title, config)

    @property
    def for_narrow(self) -> KernelEntry:
        """The sizes whose threads can keep the predicates of many narrow accesses in registers."""
        if self.narrow is None:
            return self
        return replace(self.only(self.narrow), small=self.small[:1])

    @property
    def for_granules(self) -> KernelEntry:
        """The sizes for rows of K that begin at any element."""
        return replace(self.only(self.granular[0]), small=self.granular[1:])

    @lru_cache(maxsize=64)  # noqa: B019  # entries are few, and stay
    def for_block_scales(self, rows: int | None, columns: int | None) -> KernelEntry | None:
        """The sizes that can multiply the sums of each k tile by scales of blocks of ``rows`` of A and ``columns`` of
        B (None: no scales), as an entry of their own; None if no size can."""
        smem = architecture(self.arch).smem
        sizes = [self.family.with_block_scales(size, rows, columns, smem) for size in self.sizes]
        return self._in_sizes([size for size in sizes if size is not None])

    @cached_property
    def untransposed(self) -> KernelEntry:
        """The sizes that compute the product as it is, not the transposed one."""
        sizes = [size for size in self.sizes if not size.transposed]
        entry = self if len(sizes) == len(self.sizes) else self._in_sizes(sizes)
        if entry is None:
            raise ArgumentError(
                f"kernel {self.name} computes the transposed product, and the epilogue does not take those"
            )
        return entry

    @property
    def takes_rows(self) -> bool:
        """Whether a kernel for groups of this family reads rows of A by index."""
        return self.family.grouped is not None and bool(self.family.grouped.takes_rows)

    @cached_property
    def for_gathered_rows(self) -> KernelEntry:
        """The sizes that read rows of A by index, in groups of products; all of them if none does."""
        groups = self.family.grouped
        sizes = [size for size in self.untransposed.sizes if groups is not None and groups.gathers(size)]
        return self._in_sizes(sizes) or self

    def for_long_epilogue(self, problem: Problem, limits: Limits) -> KernelEntry:
        """For problems whose epilogue is not hidden by the main loop: the sizes that hide an epilogue of many
        instructions, all sizes if none does."""
        return self._hiding or self if self.family.epilogue_shows(problem, limits) else self

    @cached_property
    def _hiding(self) -> KernelEntry | None:
        return self._in_sizes([size for size in self.sizes if self.family.hides_epilogue(size)])

    def _in_sizes(self, sizes: list[AnyConfig]) -> KernelEntry | None:
        return replace(self.only(sizes[0]), small=tuple(sizes[1:])) if sizes else None

    @property
    def family(self) -> KernelFamily:
        return family_of(self.config)

    @property
    def min_arch(self) -> int:
        """The least compute capability, 80 for sm_80."""
        return self.family.min_arch(self.config)

    @cached_property
    def sizes(self) -> tuple[AnyConfig, ...]:
        """All configurations, its own first."""
        listed = (self.config, self.shared, self.large, *self.small)
        return tuple(config for config in listed if config is not None)

    def with_operands(self, a: Operand, b: Operand, c: Operand) -> AnyConfig:
        """The configuration for other majors, vector widths and output types."""
        smem = architecture(self.arch).smem
        return self.family.buffered(self.config.with_operands(a, b, c, smem), smem)

    def check(self) -> None:
        """Raise ConstraintError when the parameters of the configuration do not fit together."""
        if "_sound" not in self.__dict__:  # a configuration does not change
            self.config.check()
            object.__setattr__(self, "_sound", True)

    def accepts(self, ab_dtype: Any) -> bool:
        return ab_dtype is (Float32 if self.config.a.dtype is TFloat32 else self.config.a.dtype)

    @property
    def arch(self) -> str:
        """The architecture that the kernel is for: sm_90a, unless its family is made for a later one."""
        return f"sm_{self.family.built_for}a"

    def printed(self, arch: str | None = None) -> dict[str, str]:
        """The kernel for ``arch`` (its own by default) as text: ``"ir"`` and ``"cuda"`` (CUDA C++). Needs neither a GPU
        nor NVRTC."""
        return cross_print(self.config, arch or self.arch)

    def compile(self, arch: str | None = None) -> Any:
        """Cross-compile for ``arch`` (its own by default); the artifact has ``.ir .cuda .ptx .sass .registers
        .spills``. Needs no GPU."""
        return cross_compile(self.config, arch or self.arch)
