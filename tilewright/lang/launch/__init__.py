"""From a function to a launch: ``jit`` and ``kernel``, staging a whole program, compiling it, and the way of a call."""
