"""Measuring configurations on a GPU, and remembering the fastest."""
