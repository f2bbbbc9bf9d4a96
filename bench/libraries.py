"""Libraries of kernels from fresh wheels: what runs, and what it says.

    python bench/libraries.py [--gpu] [--wheels FOLDER] [--speed] [--only WORD] [--write FILE]

Each library is installed into a folder of its own, without what it depends on: from PyPI, or from the wheels of a
folder where there is no network. The programs of ``bench/library_programs`` call it as its users do, by
``tilewright run --cpu`` under all checks (the default ones for Blackwell), or with ``--gpu`` on a GPU. ``--speed``
adds ``bench/library_speed.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = Path(__file__).with_name("library_programs")
SPEED = Path(__file__).with_name("library_speed.py")
BESIDE = ("apache-tvm-ffi", "einops", "torch-c-dlpack-ext", "tqdm")
"""What they import."""
BLACKWELL = "sm_100a"
ROWS, GEMM, ATTENTION = "quack_rows.py", "quack_gemm.py", "flash_attention.py"
INTERFACE, WEIGHTS = "quack_gemm_interface.py", "quack_weights.py"
LIBRARIES = {
    "quack 0.2.10": (("quack-kernels==0.2.10",), (ROWS, GEMM)),
    "quack 0.3.0": (("quack-kernels==0.3.0",), (ROWS, GEMM)),
    "quack 0.5.3": (("quack-kernels==0.5.3",), (ROWS, GEMM, INTERFACE, WEIGHTS)),
    "quack 0.6.5": (("quack-kernels==0.6.5",), (ROWS, INTERFACE, WEIGHTS)),
    "FlashAttention 4 (4.0.0b36), quack 0.5.3": (("flash-attn-4==4.0.0b36", "quack-kernels==0.5.3"), (ATTENTION,)),
    "FlashAttention 4 (4.0.0b36), quack 0.6.5": (("flash-attn-4==4.0.0b36", "quack-kernels==0.6.5"), (ATTENTION,)),
    "FlashAttention 4 (4.0.0b36), quack 0.6.5, for Blackwell": (
        ("flash-attn-4==4.0.0b36", "quack-kernels==0.6.5"),
        (f"flash_attention_blackwell.py {BLACKWELL}",),
    ),
    "quack 0.6.5, for Blackwell": (
        ("quack-kernels==0.6.5",),
        (f"{INTERFACE} {BLACKWELL}", f"quack_block_scaled.py {BLACKWELL}"),
    ),
    "Flash-Sparse-Attention 2.0.6, quack 0.6.5": (
        ("flash-sparse-attn==2.0.6", "quack-kernels==0.6.5"),
        ("flash_sparse_attention.py",),
    ),
    "Liger-Kernel 0.8.5": (("liger-kernel==0.8.5",), ("liger_forms.py",)),
    "flashlib 0.4.0": (("flashlib==0.4.0",), ("flashlib_forms.py",)),
    "Attention Gym 0.0.17": (("attn-gym==0.0.17",), ("attention_gym.py",)),
    "Parallax 0.1.1": (("parallax-kernel==0.1.1",), ("parallax_decode.py",)),
    "SonicMoE 0.1.2.post1, quack 0.6.5": (("sonic-moe==0.1.2.post1", "quack-kernels==0.6.5"), ("sonic_moe.py",)),
    "fast-trimul 3.0.6": (("fast-trimul==3.0.6",), ("fast_trimul_forms.py",)),
}
"""The wheels of each, and the programs that run with them; those for another GPU than Hopper with its architecture, in
the simulator only."""
TIMED = ("quack 0.3.0", "FlashAttention 4 (4.0.0b36), quack 0.5.3")


def checks_of(arch: str) -> str:
    """The checks of a program: all, and the default ones for GPUs after Hopper."""
    return "default" if arch else "all"


def run(program: Path, folder: str, gpu: bool, arch: str = "") -> list[str]:
    """The lines that a program prints, without the folder of the wheels."""
    places = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        "PYTHONPATH": os.pathsep.join(places),
        "TILEWRIGHT_SIM_CHECK": checks_of(arch),
        "QUACK_CACHE_ENABLED": "0",
        "TILEWRIGHT_OUTSIDE_REGISTERS": "undefined",
    }
    options = [*([] if gpu else ["--cpu"]), *(["--arch", arch] if arch else [])]
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "run", *options, str(program)],
        env={**os.environ, **settings},
        capture_output=True,
        encoding="utf-8",
    )
    if not done.stdout:
        return [f"{program.stem}: {done.stderr.strip().splitlines()[-1]}"]
    return done.stdout.replace(f"{folder}/", "").splitlines()


def install(wheels: tuple[str, ...], folder: str, source: str | None) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *wheels, *BESIDE]
    if subprocess.run([*command, *(["--no-index", "--find-links", source] if source else [])]).returncode:
        raise SystemExit(f"{', '.join(wheels)} cannot be installed from {source or 'PyPI'}; see above")


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    wheels, programs = LIBRARIES[name]
    with tempfile.TemporaryDirectory() as folder:
        install(wheels, folder, options.wheels)
        start = time.perf_counter()
        lines = []
        for program in programs:
            name_of, _, arch = program.partition(" ")
            if not (arch and options.gpu):
                lines += run(PROGRAMS / name_of, folder, options.gpu, arch)
        pairs = [line.partition(": ") for line in lines if ": " in line]
        record: dict[str, object] = {"forms": {form: found for form, _, found in pairs}}
        record["check"] = checks_of(programs[0].partition(" ")[2])
        record["seconds"] = round(time.perf_counter() - start)
        if options.speed and name in TIMED:
            record["speed"] = [json.loads(line) for line in run(SPEED, folder, True) if line.startswith("{")]
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on the GPU, not in the simulator")
    parser.add_argument("--wheels", help="a folder of wheels, in place of PyPI")
    parser.add_argument("--speed", action="store_true", help="times at real sizes, too; on a GPU")
    parser.add_argument("--only", default="", help="the libraries whose names begin with this, or contain it")
    parser.add_argument("--write", type=Path, help="the file of the results")
    options = parser.parse_args()
    records: dict[str, object] = {}
    begins = [name for name in LIBRARIES if name.startswith(options.only)]
    for name in begins or [name for name in LIBRARIES if options.only in name]:
        records[name] = measure(name, options)
        print(json.dumps({name: records[name]}, indent=1), flush=True)
        if options.write:
            command = " ".join(["python", "bench/libraries.py", *sys.argv[1:]])
            text = json.dumps({"command": command, "libraries": records}, indent=1)
            options.write.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
