"""From global memory to accumulators: how the k tiles of one output tile are loaded and multiplied."""
