"""The first training step of a GPT (8 x 1,024 tokens, bf16): seconds, by what earlier processes left on the disk.

    python bench/first_step.py [--write DIR]

Each row is a process of its own, in which PyTorch's linear layers make a step first. ``nothing`` finds an empty cache
of NVRTC's and an empty one of ours (the very first process of a fresh machine reads the compiler from its disk, too),
``NVRTC's cache`` an empty one of ours, ``all`` both as the first row left them, and ``nothing, no processes`` has
TILEWRIGHT_COMPILE_AHEAD=0. The package's modules are compiled to bytecode before, as pip does when it installs them.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import gpu_model, table, write_results

import tilewright

ROWS = (
    ("nothing", "a", "a", "1"),
    ("NVRTC's cache", "a", "b", "1"),
    ("all", "a", "a", "1"),
    ("nothing, no processes", "c", "c", "0"),
)


def process() -> None:
    """One process: its figures as a line of JSON."""
    import torch
    from model import Side, by_tilewright, by_torch, draw, timed

    torch.manual_seed(0)
    reference = Side("gpt", by_torch, None, torch.bfloat16)
    own = Side("gpt", by_tilewright, reference.model.state_dict(), torch.bfloat16)
    tokens = draw(8, 1024)
    theirs = [timed(lambda: reference.train(tokens)) / 1e3 for _ in range(3)]
    ours = [timed(lambda: own.train(tokens)) / 1e3 for _ in range(3)]
    print(json.dumps({"first_s": ours[0], "second_s": ours[1], "third_s": ours[2], "torch_first_s": theirs[0]}))


def main() -> None:
    records = []
    compileall.compile_dir(Path(tilewright.__file__).parent, quiet=1)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folders:
        for name, nvrtc, own, ahead in ROWS:
            where = {"CUDA_CACHE_PATH": f"{folders}/nvrtc-{nvrtc}", "TILEWRIGHT_CACHE_DIR": f"{folders}/own-{own}"}
            done = subprocess.run(
                [sys.executable, __file__, "--process"],
                env={**kept, **where, "TILEWRIGHT_COMPILE_AHEAD": ahead},
                capture_output=True,
                encoding="utf-8",
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            records.append({"on the disk": name, **json.loads(done.stdout.splitlines()[-1])})
            print(records[-1], flush=True)
    names = list(records[0])
    rows = [(r["on the disk"], *(f"{r[name]:.3f}" for name in names[1:])) for r in records]
    table("first training step of a GPT", rows, tuple(names))
    if "--write" in sys.argv:
        print(write_results("first_step", gpu_model(), records, Path(sys.argv[sys.argv.index("--write") + 1])))


if __name__ == "__main__":
    process() if "--process" in sys.argv else main()
