"""Kernels: a schedule, a main loop, a math and an epilogue put together."""
