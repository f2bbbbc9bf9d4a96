"""The device: which thread one is, barriers, exchange inside a warp, shared memory, atomics, single instructions."""
