"""Exploration of schedules: which warp goes on when, and when asynchronous copies arrive."""

from tilewright.sim.exploration.schedules import Exploration, explore, exploring
from tilewright.sim.exploration.runs import Explored, Failure

__all__ = ["Exploration", "Explored", "Failure", "explore", "exploring"]
