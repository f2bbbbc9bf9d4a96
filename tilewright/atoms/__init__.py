"""The instructions: one class per family, each with its layouts, constraints, simulator action and CUDA text."""
