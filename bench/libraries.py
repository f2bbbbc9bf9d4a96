"""Libraries of kernels from fresh wheels, in the simulator under all checks: what runs, and what it says.

    python bench/libraries.py [--write FILE]

Each library is installed from PyPI into a folder of its own, without what it depends on; the programs of
``bench/library_programs`` call it as its users do, by ``tilewright run --cpu``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).with_name("library_programs")
BESIDE = ("apache-tvm-ffi", "einops", "torch-c-dlpack-ext")
"""What all of them import."""
LIBRARIES = {
    "quack 0.3.0": (("quack-kernels==0.3.0",), "quack_gemm.py"),
    "FlashAttention 4 (4.0.0b36), quack 0.5.3": (
        ("flash-attn-4==4.0.0b36", "quack-kernels==0.5.3"),
        "flash_attention.py",
    ),
}


def measure(wheels: tuple[str, ...], program: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *wheels, *BESIDE]
        if subprocess.run(install).returncode:
            raise SystemExit(f"{', '.join(wheels)} cannot be installed from PyPI; see above")
        places = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        settings = {"PYTHONPATH": os.pathsep.join(places), "TILEWRIGHT_SIM_CHECK": "all", "QUACK_CACHE_ENABLED": "0"}
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", "run", "--cpu", str(PROGRAMS / program)],
            env={**os.environ, **settings}, capture_output=True, encoding="utf-8",
        )  # fmt: skip
    lines = [line.replace(f"{folder}/", "").partition(": ") for line in done.stdout.splitlines() if ": " in line]
    if not lines:
        raise SystemExit(done.stderr[-2000:])
    return {"forms": {name: found for name, _, found in lines}, "seconds": round(time.perf_counter() - start)}


def main() -> None:
    records = {name: measure(*how) for name, how in LIBRARIES.items()}
    text = json.dumps({"command": "python bench/libraries.py", "check": "all", "libraries": records}, indent=1)
    print(text)
    if "--write" in sys.argv:
        Path(sys.argv[sys.argv.index("--write") + 1]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
