"""C programs with exported functions on a GPU: their results against NumPy's, and against those of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.export.harness import HERE, needs_compiler, program_text, run_c
from tests.export.test_calls import compiled_add
from tests.export.test_gemm_calls import FLAGS, WORKSPACE, gemm
from tilewright.cute.runtime import load_module
from tilewright.gemm.choice.registry import KERNELS

pytestmark = [needs_compiler, pytest.mark.gpu]

ADD = """
#include <stdio.h>
#include "gpu.h"
#include "add.h"
int main(void) {
  add_Kernel_Module_t module;
  size_t size;
  int32_t code = add_Kernel_Module_Load(&module), n;
  add_Tensor_a_t a;
  add_Tensor_b_t b;
  add_Tensor_c_t c;
  if (code) return fprintf(stderr, "%s\\n", add_Get_Error_String()), 1;
  a.data = gpu_read("a", &size), b.data = gpu_read("b", &size), c.data = gpu_read("c", &size);
  n = (int32_t)(size / 4);
  a.dynamic_shapes[0] = b.dynamic_shapes[0] = c.dynamic_shapes[0] = n;
  code = cute_dsl_add_wrapper(&module, &a, &b, &c, 0.5f, NULL);
  if (code) return fprintf(stderr, "%s\\n", add_Get_Error_String()), 2;
  gpu_write("c", c.data, size);
  return add_Kernel_Module_Unload(&module);
}
"""


def here_arch() -> str:
    from tilewright.cuda.machine import default_architecture

    return default_architecture()


def test_elementwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiled_add().export_to_c(tmp_path, "add")
    a, b = np.random.default_rng(0).standard_normal((2, 100_003), np.float32)
    for name, array in (("a", a), ("b", b), ("c", np.zeros_like(a))):
        array.tofile(tmp_path / name)
    (tmp_path / "gpu.h").write_text((HERE / "gpu.h").read_text())
    done = run_c(ADD, tmp_path, ["add"])
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.fromfile(tmp_path / "c", np.float32), a + np.float32(0.5) * b, rtol=1e-6)


def gemm_program(executor: Any, args: Any, arrays: dict[int, str]) -> str:
    """The program that the other tests run with addresses of nothing, with the files in their place."""
    text = program_text(executor, "f", args)
    first = 'f_Kernel_Module_Load(&module);\n  if (code) return fprintf(stderr, "%s\\n", f_Get_Error_String()), 1;'
    fills = "".join(f'\n  pointers[{i}] = gpu_read("{name}", &sizes[{i}]);' for i, name in enumerate(arrays.values()))
    text = text.replace("#include <stdio.h>", '#include <stdio.h>\n#include "gpu.h"')
    head, body = text.split("  int32_t code;\n", 1)
    assigned, rest = body.split("  code = f_Kernel_Module_Load(&module);", 1)
    for i, address in enumerate(arrays):
        assert f"(void *)(uintptr_t){address}u" in assigned
        assigned = assigned.replace(f"(void *)(uintptr_t){address}u", f"pointers[{i}]")
    names = [line for line in assigned.splitlines() if "." not in line.split("=")[0]]
    others = [line for line in assigned.splitlines() if line not in names]
    last = list(arrays.values()).index("d")
    rest = rest.replace("  return f_Kernel", f'  gpu_write("d", pointers[{last}], sizes[{last}]);\n  return f_Kernel')
    count = len(arrays)
    return (
        f"{head}  int32_t code;\n  void *pointers[{count}];\n  size_t sizes[{count}];\n"
        + "\n".join(names)
        + f"\n  code = {first}{fills}\n"
        + "\n".join(others)
        + rest
    )


@pytest.mark.parametrize(
    "kernel, stream_k, shape",
    [
        ("hopper_f16", False, (520, 264, 96)),
        ("hopper_f16", True, (1152, 4096, 512)),
        ("tensorop_f16", False, (300, 264, 96)),
    ],
)
def test_gemm(
    kernel: str, stream_k: bool, shape: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel.startswith("hopper") and here_arch() != "sm_90a":
        pytest.skip("needs sm_90")
    monkeypatch.chdir(tmp_path)
    m, n, k = shape
    config = KERNELS[kernel].config
    executor, args = gemm(config, shape, stream_k)
    executor.export_to_c(tmp_path, "f")
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (k, n), (m, n)))
    b_major_n = config.b.major.name != "K"
    files = {
        0x1000000: ("a", a),
        0x2000000: ("b", b if b_major_n else np.ascontiguousarray(b.T)),
        0x3000000: ("c", c),
        0x4000000: ("d", np.zeros((m, n), np.float16)),
    }
    if stream_k:
        how = args[5]
        files[WORKSPACE] = "workspace", np.zeros(how.workspace.numel, np.float32)
        files[FLAGS] = "flags", np.zeros(how.flags.numel, np.int32)
    for name, array in files.values():
        array.tofile(tmp_path / name)
    (tmp_path / "gpu.h").write_text((HERE / "gpu.h").read_text())
    done = run_c(gemm_program(executor, args, {at: name for at, (name, _) in files.items()}), tmp_path, ["f"])
    assert done.returncode == 0, done.stderr
    expected = 1.5 * (a.astype(np.float64) @ b.astype(np.float64)) + 0.25 * c
    found = np.fromfile(tmp_path / "d", np.float16).reshape(m, n)
    np.testing.assert_array_equal(found, expected.astype(np.float16))


def test_loaded_back(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    compiled = compiled_add()
    compiled.export_to_c(tmp_path, "add")
    a, b = torch.randn(2, 10_001, device="cuda")
    mine, theirs = torch.zeros(2, 10_001, device="cuda")
    stream = torch.cuda.current_stream()
    load_module(tmp_path / "add.o").add(a, b, mine, 0.5, stream)
    compiled(a, b, theirs, 0.5, stream)
    torch.cuda.synchronize()
    assert torch.equal(mine, theirs) and torch.allclose(mine, a + 0.5 * b)
    with pytest.raises(cutlass.errors.ArgumentError, match="expected"):
        load_module(tmp_path / "add.o").add(a.half(), b, mine, 0.5, stream)
