"""How a problem will be multiplied: the kernel with its tile, suited to how the operands lie, and the decomposition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tilewright.gemm.arrays import operand_of
from tilewright.gemm.choice.choose import best
from tilewright.gemm.choice.registry import KernelEntry, choose
from tilewright.gemm.config import GemmConfig, Major
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.schedule.streamk import StreamK
from tilewright.lang.device.smem import get_smem_capacity_in_bytes
from tilewright.lang.tools.hardware import HardwareInfo


@dataclass(frozen=True)
class Plan:
    """``config`` is what is compiled; ``shares`` Stream-K's plan, None where each tile has a block of its own."""

    entry: KernelEntry
    config: GemmConfig
    shares: StreamK | None

    @classmethod
    def of(
        cls, problem: Problem, kernel: str | KernelEntry | None, decomposition: str | StreamK, machine: str
    ) -> Plan:  # fmt: skip
        suited = suited_entry(choose(problem.A.dtype, kernel), problem)
        entry, shares = best(suited, decomposition, problem.shape, room(machine))
        return cls(entry, with_operands(entry, problem), shares)

    @property
    def decomposition(self) -> str:
        return "data_parallel" if self.shares is None else "stream_k"


@cache
def room(machine: str) -> tuple[int, int]:
    """(multiprocessors, shared memory of a block in bytes) of the GPU, or of the H100 that the simulator stands for."""
    if machine == "cpu":
        return 132, get_smem_capacity_in_bytes("sm_90")
    hardware = HardwareInfo()
    major, minor = hardware.get_compute_capability()
    return hardware.get_device_multiprocessor_count(), get_smem_capacity_in_bytes(f"sm_{major}{minor}")


def with_operands(entry: KernelEntry, problem: Problem) -> GemmConfig:
    """The entry's configuration for matrices that lie as the problem's do."""
    A, B, C, D = problem.read_as(entry.config.a.dtype).matrices
    bM, bN, bK = entry.config.tile
    return entry.with_operands(
        operand_of((A,), {Major.K: bK, Major.MN: bM}),
        operand_of((B.transposed(),), {Major.K: bK, Major.MN: bN}),
        operand_of((D, C), {Major.K: bN, Major.MN: bM}),
    )


def suited_entry(entry: KernelEntry, problem: Problem) -> KernelEntry:
    """The entry for matrices that lie as the problem's do; in its form for narrow accesses where they force these."""
    config = with_operands(entry, problem)
    if min(x.copy_bits for x in (config.a, config.b, config.c)) == 128:
        return entry
    narrow = entry.for_narrow
    config, *small = (with_operands(narrow.only(c), problem) for c in (narrow.config, *narrow.small))
    return replace(narrow, config=config, small=tuple(small))
