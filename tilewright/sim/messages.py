"""The texts of the simulator's errors: what, where in the user's Python, which block and thread, how to mend it."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from tilewright.ir.core import Op
from tilewright.sim.geometry import WARP

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.faults import Fault
    from tilewright.sim.group import Group


def place(op: Op | None) -> str:
    """``file:line`` and the text of that line."""
    if op is None or op.loc is None:
        return ""
    text = linecache.getline(op.loc.file, op.loc.line).strip()
    return f"at {op.loc}{f':  {text}' if text else ''}"


def fault(launch: Launch, wrong: Fault, group: Group, op: Op | None, mask: Any) -> str:
    lane = wrong.first_lane(group)
    geometry = launch.geometry
    warp = int(group.warps[lane // WARP])
    block = tuple(int(v) for v in group.wave.coords[warp // geometry.warps])
    thread = tuple(int(v) for v in geometry.thread_of(warp, lane % WARP))
    lines = [wrong.text, f"in kernel {launch.program.name!r} {place(op)}".rstrip()]
    lines.append(f"block {block}, thread {thread} (warp {warp % geometry.warps}, lane {lane % WARP})")
    if wrong.detail:
        lines.append(str(wrong.detail))
    if wrong.mend:
        lines.append(f"to mend: {wrong.mend}")
    return "\n  ".join(lines)


def internal(kernel: str, op: Op | None, error: BaseException) -> str:
    what = op.attrs["atom"].mnemonic() if op is not None and op.opcode == "call" else op.opcode if op else "?"
    return "\n  ".join((
        f"the simulator cannot run {what}: {type(error).__name__}: {error}",
        f"in kernel {kernel!r} {place(op)}".rstrip(),
    ))  # fmt: skip


def deadlock(launch: Launch) -> str:
    """Every warp waits: who waits where, and where the others of the block are."""
    blocked = launch.groups[0]
    per_block = launch.geometry.warps
    slot = int(blocked.warps[0]) // per_block
    wave = blocked.wave
    there = [""] * per_block
    for group in launch.groups:
        if group.wave is not wave:
            continue
        for row, warp in enumerate(group.warps):
            if warp // per_block == slot:
                there[warp % per_block] = f"waiting for {group.wait.describe(row)}, {place(group.wait.op)}"
    coords = tuple(int(v) for v in wave.coords[slot])
    lines = [f"deadlock in kernel {launch.program.name!r}: no warp can go on; block {coords}:"]
    for first, last, state in _runs([state or "no longer in the kernel" for state in there]):
        who = f"warp {first}" if first == last else f"warps {first}-{last}"
        lines.append(f"{who} (threads {first * WARP}-{min((last + 1) * WARP, launch.geometry.threads) - 1}): {state}")
    lines.append("to mend: let every thread that the barrier counts reach it, on every path through branches and loops")
    return "\n  ".join(lines)


def hang(launch: Launch) -> str:
    group = launch.groups[0]
    block = tuple(int(v) for v in group.wave.coords[int(group.warps[0]) // launch.geometry.warps])
    node = launch.program.nodes[group.pc]
    op = node.op or (node.ops[0] if node.ops else None)
    return "\n  ".join((
        f"kernel {launch.program.name!r} hangs: every warp that can run spins in a while loop and nothing changes",
        f"block {block} spins {place(op)}",
        "to mend: something must set what the loop waits for; all blocks of the grid are resident here",
    ))  # fmt: skip


def _runs(states: list[str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for i, state in enumerate(states):
        if found and found[-1][2] == state:
            found[-1] = (found[-1][0], i, state)
        else:
            found.append((i, i, state))
    return found
