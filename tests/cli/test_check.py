"""``tilewright check`` runs a script under all checks and tells by its exit code whether something was found."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tilewright.cli.app import app

SCRIPT = """
import sys
import numpy as np
import tilewright as cutlass
from tilewright import cute

@cute.kernel
def reverse(x: cute.Tensor, y: cute.Tensor, sync: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64), cute.make_layout(64))
    s[t] = x[t]
    if cutlass.const_expr(sync):
        cute.arch.sync_threads()
    y[t] = s[63 - t]

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, sync: cutlass.Constexpr):
    reverse(x, y, sync).launch(grid=(1, 1, 1), block=(64, 1, 1))

if __name__ == "__main__":
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(x, y, "sync" in sys.argv[1:])
"""


def test_a_script_is_checked(tmp_path: Path) -> None:
    script = tmp_path / "reverse.py"
    script.write_text(SCRIPT)
    found = CliRunner().invoke(app, ["check", str(script)])
    assert found.exit_code == 1, found.output
    for text in ("data-race: data race in shared memory", "s[t] = x[t]", "y[t] = s[63 - t]", "sync_threads"):
        assert text in found.output
    clean = CliRunner().invoke(app, ["check", "--seed", "3", str(script), "sync"])
    assert clean.exit_code == 0 and "nothing found" in clean.output, clean.output
