"""Exploration of schedules: which warp goes on when, and when asynchronous copies arrive."""

from tilewright.sim.exploration.runs import Explored, Failure
from tilewright.sim.exploration.schedules import Exploration, explore, exploring

__all__ = ["Exploration", "Explored", "Failure", "explore", "exploring"]
