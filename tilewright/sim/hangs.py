"""The texts of launches that cannot end: what every warp of a block waits for, or which loop it spins in and what that
loop reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.target import WARP
from tilewright.sim.cycles import cycle_text
from tilewright.sim.messages import source_line

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


BARRIERS = (
    "let every thread that the barrier counts reach it, on every path through branches and loops; a wait for an "
    "mbarrier must name the parity of a phase that its arrivals complete"
)


def deadlock_text(launch: Launch) -> str:
    """Every warp waits: who waits where, and where the others of the block are."""
    group = launch.groups[0]
    first = int(group.warps[0]) // launch.geometry.warps
    size = launch.geometry.cluster_size
    blocks = [block_text(launch, group.wave, slot) for slot in range(first // size * size, first // size * size + size)]
    chain = cycle_text(launch, group)
    fixes = list(dict.fromkeys(fix for g in launch.groups if (fix := getattr(g.wait, "fix", ""))))
    return "\n  ".join(
        (
            f"deadlock in kernel {launch.program.name!r}: no warp can go on; {blocks[0]}",
            *blocks[1:],
            *([chain] if chain else []),
            f"to fix: {'; '.join(fixes) or BARRIERS}",
        )
    )


def hang_text(launch: Launch, spinning: list[Group]) -> str:
    """Loops repeat, and no other warp changes what they read."""
    first = min(spinning, key=lambda g: int(g.warps[0]))
    return "\n  ".join(
        (
            f"kernel {launch.program.name!r} hangs: every warp that can run spins in a while loop and nothing changes",
            block_text(launch, first.wave, int(first.warps[0]) // launch.geometry.warps),
            "to fix: something must set what the loop waits for; all blocks of the grid are resident here, but lanes "
            "that leave a loop wait for those of their warp that are still in it",
        )
    )


def waits(launch: Launch, group: Group, iterations: int) -> str:
    """A loop writes memory, but what its condition is computed from does not change."""
    return "\n  ".join(
        (
            f"kernel {launch.program.name!r} hangs: a while loop has run {iterations} iterations, and nothing has "
            "changed what its condition is computed from",
            block_text(launch, group.wave, int(group.warps[0]) // launch.geometry.warps),
            "to fix: let an iteration of the loop, or another warp, change what the condition reads; a loop that does "
            "so later needs a higher tilewright.sim.options(idle_turns=...)",
        )
    )


def endless_loop_text(launch: Launch, group: Group) -> str:
    return "\n  ".join(
        (
            f"kernel {launch.program.name!r} hangs: a warp has run {group.spins} iterations of while loops",
            block_text(launch, group.wave, int(group.warps[0]) // launch.geometry.warps),
            "to fix: let the loop end; if it needs more iterations, raise tilewright.sim.options(turns=...)",
        )
    )


def waiting_ops(groups: list[Group]) -> tuple[Op | None, list[Op]]:
    """The ops at which these groups wait or spin: the first, and the others."""
    ops_of_groups = [
        group.wait.op if group.wait is not None else group.spin.op if group.spin is not None else None
        for group in groups
    ]
    ops = list(dict.fromkeys(op for op in ops_of_groups if op is not None))
    return (ops[0] if ops else None), ops[1:]


def block_text(launch: Launch, wave: Wave, slot: int) -> str:
    """The block in ``slot`` of the wave, and a line for each of its warps (equal neighbours share one)."""
    per_block = launch.geometry.warps
    states = ["no longer in the kernel"] * per_block
    for other in launch.groups:
        for row, warp in enumerate(other.warps):
            if other.wave is wave and warp // per_block == slot:
                states[warp % per_block] = _state(other, row)
    lines = [f"block {tuple(int(v) for v in wave.coords[slot])}:"]
    for first, last, state in _runs(states):
        who = f"warp {first}" if first == last else f"warps {first}-{last}"
        lines.append(f"{who} (threads {first * WARP}-{min((last + 1) * WARP, launch.geometry.threads) - 1}): {state}")
    return "\n  ".join(lines)


def _state(group: Group, row: int) -> str:
    if group.wait is not None:
        return f"waiting for {group.wait.describe(row)}, {source_line(group.wait.op)}"
    if group.spin is None:
        return "able to go on"
    mask = group.mask
    lanes = np.ones(WARP, bool) if mask is None else mask[row * WARP : (row + 1) * WARP]
    if not lanes.any():
        return "behind a loop in which other warps turn"
    whose = "" if lanes.all() else f"lanes {_ranges(np.flatnonzero(lanes))} "
    reads = group.spin.describe(group, row)
    return f"{whose}spinning {source_line(group.spin.op)}{f'; it reads {reads}' if reads else ''}"


def _ranges(numbers: np.ndarray) -> str:
    """Ascending numbers as ``0-7, 16``."""
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    return ", ".join(f"{r[0]}-{r[-1]}" if r.size > 1 else f"{r[0]}" for r in np.split(numbers, breaks))


def _runs(states: list[str]) -> list[tuple[int, int, str]]:
    runs: list[tuple[int, int, str]] = []
    for i, state in enumerate(states):
        if runs and runs[-1][2] == state:
            runs[-1] = (runs[-1][0], i, state)
        else:
            runs.append((i, i, state))
    return runs
