"""The actor of an event: a thread, or the asynchronous agent that acts for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.target import WARP

if TYPE_CHECKING:
    from tilewright.sim.engine import Launch
    from tilewright.sim.group import Group
    from tilewright.sim.wave import Wave


@dataclass(frozen=True)
class Actor:
    """``block``: its coordinates in the grid; ``warp``: its number in the block; ``lane`` and ``thread`` where one
    thread acts; ``agent``: what acts for it (``"cp.async"``, ``"wgmma"``, ``"tma"``), ``""`` the thread itself;
    ``role``: what the warp does in its kernel, where warps have roles."""

    block: tuple[int, ...]
    warp: int | None = None
    lane: int | None = None
    thread: tuple[int, ...] | None = None
    agent: str = ""
    role: str = ""

    def __str__(self) -> str:
        where = f"block {self.block}"
        if self.warp is not None:
            where += f", warp {self.warp}"
        if self.role:
            where += f" ({self.role})"
        if self.lane is not None:
            where += f", lane {self.lane} (thread {self.thread})"
        return f"{self.agent} for {where}" if self.agent else where


def actor(launch: Launch, block: Any, warp: int, lane: int | None = None, agent: str = "", role: str = "") -> Actor:
    """``block``: coordinates; ``warp``: its number in the block; ``lane`` None: the whole warp."""
    thread = None if lane is None else tuple(int(v) for v in launch.geometry.thread_of(warp, lane))
    return Actor(tuple(int(v) for v in block), int(warp), lane, thread, agent, role)


def actor_in_wave(wave: Wave, warp: int, lane: int | None = None, agent: str = "") -> Actor:
    """``warp``: its number in the wave; ``lane`` None: the whole warp."""
    block, within = divmod(warp, wave.geometry.warps)
    return actor(wave.launch, wave.coords[block], within, lane, agent)


def thread_of(group: Group, lane: int, agent: str = "") -> Actor:
    """The thread of row ``lane`` of a group (0 to ``32 * warps - 1``)."""
    return actor_in_wave(group.wave, int(group.warps[lane // WARP]), int(lane) % WARP, agent)


def warp_of(group: Group, row: int) -> Actor:
    """The warp of row ``row`` of a group's warps, as a whole."""
    return actor_in_wave(group.wave, int(group.warps[row]))


def lanes_of(group: Group, mask: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """The rows of the lanes of a mask (None: all), as accesses name them."""
    remembered = group.registers.get("check.lanes")
    if remembered is None:
        remembered = group.registers["check.lanes"] = np.arange(group.lanes_count)
    lanes: np.ndarray[Any, Any] = remembered if mask is None else remembered[mask]
    return lanes
