"""What Tilewright costs on a laptop: simulating, importing, compiling. Needs no GPU.

python bench/laptop.py [--write]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import numpy as np
from figures import median_seconds, numpy_matmul_seconds, table, write_results

SIMULATED = (("tensorop_f16", np.float16, 512), ("tensorop_f16", np.float16, 1024), ("simt_f32", np.float32, 256))


def simulator() -> list[dict[str, Any]]:
    """Each program on the simulator against numpy.matmul on one thread, in the same run."""
    from tilewright.gemm import gemm

    records = []
    for kernel, dtype, n in SIMULATED:
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((n, n)).astype(dtype) for _ in range(2))
        reference = numpy_matmul_seconds(n)
        seconds = median_seconds(partial(gemm, a, b, kernel=kernel, machine="cpu"), rounds=3)
        records.append(
            {
                "what": f"simulator {kernel} {n}^3",
                "seconds": seconds,
                "numpy_seconds": reference,
                "ratio": seconds / reference,
            }
        )
    return records


def imports() -> list[dict[str, Any]]:
    """Fresh processes; what NumPy's own import takes is included."""
    records = []
    for module in ("tilewright", "tilewright.cute"):
        probe = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)\n"
            "import sys; assert not {'torch', 'cuda'} & set(sys.modules)"
        )
        runs = [
            float(subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True).stdout)
            for _ in range(7)
        ]
        records.append({"what": f"import {module}", "seconds": sorted(runs)[3]})
    return records


COMPILE_PROBE = """
import json, time, sys
from tilewright.gemm import kernels
from tilewright.gemm import stage
from tilewright.cuda import compile, emit
name, arch = sys.argv[1], sys.argv[2]
t0 = time.perf_counter(); function = stage(kernels()[name].config)
t1 = time.perf_counter(); emit(function)
t2 = time.perf_counter(); compile(function, arch)
t3 = time.perf_counter(); compile(function, arch)
print(json.dumps({"stage": t1 - t0, "emit": t2 - t1, "nvrtc": t3 - t2}))
"""


def compiling() -> list[dict[str, Any]]:
    """Cold compiles in fresh processes with an empty disk cache, then again from the cache."""
    records = []
    for name in ("tensorop_f16", "simt_f32", "hopper_f16"):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = [compile_once(name, cache) for _ in range(2)]
        records.append({"what": f"cold compile {name} sm_90a", **cold, "cached": warm["nvrtc"]})
    return records


def compile_once(name: str, cache: str) -> dict[str, float]:
    import os

    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_PROBE, name, "sm_90a"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        encoding="utf-8",
    )
    return json.loads(done.stdout)


def main() -> None:
    start = time.perf_counter()
    records = imports() + compiling() + simulator()
    rows = [(r["what"], ", ".join(f"{k} {v:.3g}" for k, v in r.items() if k != "what")) for r in records]
    table(f"laptop figures, in seconds ({time.perf_counter() - start:.0f} s in all)", rows, ("what", "figures"))
    if "--write" in sys.argv:
        print(write_results("laptop", "cpu", records))


if __name__ == "__main__":
    main()
