"""From accumulators to D: how results are stored, and the functions applied on the way."""
