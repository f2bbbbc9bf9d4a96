"""Tilewright: CuTe in open Python."""
