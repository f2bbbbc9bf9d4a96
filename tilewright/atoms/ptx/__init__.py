"""Inline PTX: the instruction that carries its text, what its text says, and what the simulator knows of it."""
