"""``cute.export``: what programs need that are built with exported functions (docs/ahead_of_time.md)."""
