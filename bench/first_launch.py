"""The first small launch of a process in the simulator: imports and work beyond those of NumPy and ``tilewright.cute``.

python bench/first_launch.py [processes]

Process time in milliseconds, the least of some fresh processes; modules are compiled before. What a launch needs is
imported by it, so this is what a test of one small kernel waits for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import table

PROGRAM = """
import sys, time
import numpy as np
from tilewright import cute
times, modules = [time.process_time()], [len(sys.modules)]
@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    c[i] = a[i] + b[i]
@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=[8, 1, 1], block=[128, 1, 1])
times.append(time.process_time())
a, b, c = np.ones(1024, np.float32), np.ones(1024, np.float32), np.zeros(1024, np.float32)
for _ in range(2):
    add(a, b, c)
    times.append(time.process_time())
assert (c == 2).all()
print(*[1e3 * (after - before) for before, after in zip(times, times[1:])], len(sys.modules) - modules[0])
"""
STEPS = ("decorators, ms", "first launch, ms", "second launch, ms", "modules")


def main() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "first.py")  # the text of a kernel must be in a file
        path.write_text(PROGRAM, encoding="utf-8")
        command = [sys.executable, str(path)]
        runs = [
            subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True).stdout.split()
            for _ in range(1 + int(sys.argv[1] if len(sys.argv) > 1 else 9))
        ]
    least = [min(map(float, step)) for step in zip(*runs[1:], strict=True)]
    table("the first small launch of a process", [[f"{x:.1f}" for x in least]], STEPS)


if __name__ == "__main__":
    main()
