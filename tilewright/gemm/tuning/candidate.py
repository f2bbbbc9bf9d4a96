"""A way to multiply that can be written down: the name of a kernel, the numbers of its size, its shared tiles."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.config import AnyConfig
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.family.plan_options import kernel_extents
from tilewright.gemm.host.plan import Plan, limits
from tilewright.gemm.host.problem import Problem as Product
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.tools.hardware import clusters_at_once

Problem = tuple[int, int, int, int]  # M, N, K, L
TYPED = ("a", "b", "c", "acc_dtype")
"""Fields of a configuration that its kernel decides."""


@dataclass(frozen=True)
class Candidate:
    """``size`` has the fields of the configuration in which it differs from the kernel's first; ``shares`` (tiles,
    blocks) the shared tiles and the blocks that share them, None where each block makes a tile of its own;
    ``together``: all blocks of a tile add up a part of it each; ``packed``: matrices that the kernel cannot take as
    they lie are copied to aligned rows."""

    kernel: str
    size: tuple[tuple[str, Any], ...]
    shares: tuple[int, int] | None
    together: bool = False
    packed: bool = False

    @classmethod
    def of(cls, entry: KernelEntry, plan: StreamK | None, packed: bool = False) -> Candidate:
        """``entry`` in the size of its configuration."""
        first = KERNELS[entry.name].config
        differing = ((f.name, getattr(entry.config, f.name)) for f in fields(first) if f.name not in TYPED)
        size = tuple((name, value) for name, value in differing if value != getattr(first, name))
        if plan is None:
            return cls(entry.name, size, None, packed=packed)
        return cls(entry.name, size, (plan.sk_tiles, plan.sk_blocks), plan.shared_reduction, packed)

    @property
    def entry(self) -> KernelEntry:
        """The kernel in this size. Raises ArgumentError or ConstraintError for an unknown kernel or size."""
        if self.kernel not in KERNELS:
            raise ArgumentError(f"there is no kernel {self.kernel!r}")
        entry = KERNELS[self.kernel]
        fields_of = {f.name: getattr(entry.config, f.name) for f in fields(entry.config) if f.name not in TYPED}
        for name, value in self.size:
            if name not in fields_of or not same_kind(fields_of[name], value):
                raise ArgumentError(f"kernel {self.kernel} has no size with {name} = {value!r}")
        # The size holds names and values of fields.
        config: AnyConfig = replace(entry.config, **dict(self.size))
        config.check()
        return entry.only(config)

    def decomposition(self, problem: Problem, multiprocessors: int, smem: int) -> str | StreamK:
        """The ``decomposition`` for :func:`~tilewright.gemm.gemm`."""
        if self.shares is None:
            return "data_parallel"
        config = self.entry.config
        m, n = kernel_extents(config, problem[:2])
        workers = clusters_at_once(multiprocessors, config.cluster_size)
        plan = StreamK.of(
            (m, n, problem[2]),
            config.cluster_tile,
            multiprocessors=workers,
            occupancy=config.blocks_at_once(smem),
            fragments=config.fragments,
            shared=self.shares,
        )
        return replace(plan, shared_reduction=self.together)

    def plan(self, problem: Product, machine: str, may_pack: str = "ABCD") -> Plan:
        """The problem's plan for ``machine``. Raises ArgumentError or ConstraintError where it cannot be: operands that
        the kernel does not take, copies of other matrices than ``may_pack`` has."""
        how = self.decomposition(problem.shape, *limits(machine))
        if self.packed:
            plan = Plan.with_copies(problem, self.entry, how, machine, may_pack)
        else:
            plan = Plan.of(problem, [self.entry], how, machine)
        return plan if self.shares is None else plan.renumbered()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "size": dict(self.size)}

    @classmethod
    def from_json(cls, read: Any) -> Candidate:
        """Raises ArgumentError for what :meth:`to_json` did not make."""
        try:
            size = tuple((str(name), tuplewise(value)) for name, value in read["size"].items())
            shares = read["shares"]
            if shares is not None:
                tiles, blocks = (int(number) for number in shares)
                shares = (tiles, blocks)
            also = (bool(read.get(name, False)) for name in ("together", "packed"))  # files of before have neither
            return cls(str(read["kernel"]), size, shares, *also)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(f"{read!r} does not describe a way to multiply: {error}") from None

    def __str__(self) -> str:
        config = self.entry.config
        parts = [self.kernel, "x".join(map(str, config.tile)), f"{config.stages} stages"]
        parts += [f"{name} {value}" for name, value in self.size if name not in ("tile", "stages", "epilogue_columns")]
        if self.packed:
            parts.append("matrices copied to aligned rows")
        if self.shares is not None:
            blocks = "blocks" if config.cluster_size == 1 else "clusters"
            parts.append(f"{self.shares[0]} tiles shared by {self.shares[1]} {blocks}{' that add up' * self.together}")
        return ", ".join(parts)


def tuplewise(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def same_kind(stored: Any, value: Any) -> bool:
    """Whether ``value`` may replace ``stored``: positive integers, tuples of as many, words, truth values."""
    if isinstance(stored, tuple):
        pairs = isinstance(value, tuple) and len(value) == len(stored)
        return pairs and all(same_kind(x, y) for x, y in zip(stored, value, strict=True))
    if type(value) is not type(stored):
        return False
    return not isinstance(value, int) or isinstance(value, bool) or 0 <= value < 4096
