"""Inline PTX: the instruction that carries its text, what its text says, and its actions in the simulator."""
