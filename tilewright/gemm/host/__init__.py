"""From arrays to a launch: problem, plan, handle."""
