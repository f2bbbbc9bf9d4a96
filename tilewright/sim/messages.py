"""The texts of the simulator's errors: what, where in the user's Python, which block and thread, how to fix it."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from tilewright.ir.core import Location, Op
from tilewright.ir.target import WARP

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.faults import Fault
    from tilewright.sim.group import Group


def source_line(of: Op | Location | None) -> str:
    """``file:line`` and the text of that line."""
    where = of.loc if isinstance(of, Op) else of
    if where is None:
        return ""
    text = linecache.getline(where.file, where.line).strip()
    return f"at {where}{f':  {text}' if text else ''}"


def fault_text(launch: Launch, wrong: Fault, group: Group, op: Op | None, mask: Any) -> str:
    lane = wrong.first_lane(group)
    geometry = launch.geometry
    warp = int(group.warps[lane // WARP])
    block = tuple(int(v) for v in group.wave.coords[warp // geometry.warps])
    thread = tuple(int(v) for v in geometry.thread_of(warp, lane % WARP))
    lines = [wrong.text, f"in kernel {launch.program.name!r} {source_line(op)}".rstrip()]
    lines.append(f"block {block}, thread {thread} (warp {warp % geometry.warps}, lane {lane % WARP})")
    if wrong.detail:
        lines.append(str(wrong.detail))
    if wrong.fix:
        lines.append(f"to fix: {wrong.fix}")
    return "\n  ".join(lines)


def internal_error_text(kernel: str, op: Op | None, error: BaseException) -> str:
    what = op.attrs["atom"].mnemonic() if op is not None and op.opcode == "call" else op.opcode if op else "?"
    return "\n  ".join(
        (
            f"the simulator cannot run {what}: {type(error).__name__}: {error}",
            f"in kernel {kernel!r} {source_line(op)}".rstrip(),
        )
    )
