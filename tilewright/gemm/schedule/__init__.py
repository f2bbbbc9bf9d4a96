"""Who multiplies what, and in which order: plain host objects that know no GPU, and their device side."""
