"""Exploration of schedules: which warp goes on when, and when asynchronous copies arrive."""

from tilewright.sim.exploration.explore import Exploration, Failure, explore, exploring

__all__ = ["Exploration", "Failure", "explore", "exploring"]
