"""Instructions that the GPU which a kernel is meant for lacks: with ``sim.options(arch="sm_80")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.target import CLUSTERS, architecture
from tilewright.sim.checks.checker import Checker
from tilewright.sim.checks.findings import Finding, Party
from tilewright.sim.checks.sites import kernel_facts

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch


class Architectures(Checker):
    def begin(self, launch: Launch) -> None:
        """Look at all instructions of the kernel before it runs, also at those that this launch will not reach."""
        if not launch.options.arch:
            return
        arch = architecture(launch.options.arch, bare=True)
        for op in kernel_facts(launch.program).calls:
            atom = op.attrs["atom"]
            if lacking := atom.lacking(arch, op):
                self.findings.add(
                    Finding(
                        "architecture",
                        f"{atom.mnemonic()} needs {lacking}; the kernel is meant for {arch}",
                        [Party("used", op)],
                        None,
                        "that GPU has no such instruction",
                        f"take an instruction of {arch}, or name another GPU (sim.options(arch=...), "
                        "tilewright run --arch)",
                    )
                )
        if launch.geometry.cluster_size > 1 and arch.capability < CLUSTERS:
            text = f"clusters need sm_90; the kernel is meant for {arch}"
            self.findings.add(Finding("architecture", text, [], None, "", "launch without cluster="))
