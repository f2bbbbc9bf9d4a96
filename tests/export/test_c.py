"""Exported functions in C and C++ programs: codes and texts of errors, loading once, threads, devices, compilers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tilewright as cutlass
from tests.export.harness import COMPILER, WARNINGS, Driver, needs_compiler, run_c
from tests.export.test_calls import compiled_add, copy
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor

pytestmark = needs_compiler

MAIN = """
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#include "add.h"
static add_Tensor_a_t a = {{(void *)0x1000, {{100}}}};
static add_Tensor_b_t b = {{(void *)0x2000, {{100}}}};
static add_Tensor_c_t c = {{(void *)0x3000, {{100}}}};
static add_Kernel_Module_t module;
void show(int32_t code);
int32_t call(void);
void show(int32_t code) {{ printf("%d %s\\n", (int)code, code ? add_Get_Error_String() : ""); }}
int32_t call(void) {{ return cute_dsl_add_wrapper(&module, &a, &b, &c, 2.0f, NULL); }}
int main(void) {{
{body}
  return 0;
}}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    compiled_add().export_to_c(folder, "add", gpu_arch=("sm_80", "sm_90a"))
    return folder


def lines_of(body: str, exported: Path, driver: Driver | None, **environment: str) -> list[str]:
    done = run_c(MAIN.format(body=body), exported, ["add"], driver, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_before_loading_and_without_a_module(exported: Path, driver: Driver) -> None:
    body = """
  show(call());
  show(cute_dsl_add_wrapper(NULL, &a, &b, &c, 2.0f, NULL));
  show(add_Kernel_Module_Load(NULL));
  show(add_Kernel_Module_Unload(NULL));
  memset(&module, 0x5a, sizeof module);
  show(call());
"""
    found = lines_of(body, exported, driver)
    assert [line.partition(" ")[0] for line in found] == ["3", "3", "1", "0", "3"]
    assert "add_Kernel_Module_Load first" in found[0] and "module is NULL" in found[2]


def test_arguments_are_checked(exported: Path, driver: Driver) -> None:
    body = """
  show(add_Kernel_Module_Load(&module));
  show(cute_dsl_add_wrapper(&module, &a, NULL, &c, 2.0f, NULL));
  a.data = (void *)0x1002; show(call()); a.data = (void *)0x1000;
  a.dynamic_shapes[0] = -1; show(call()); a.dynamic_shapes[0] = 100;
  b.dynamic_shapes[0] = 99; show(call());
  a.dynamic_shapes[0] = b.dynamic_shapes[0] = c.dynamic_shapes[0] = 0; show(call());
"""
    found = lines_of(body, exported, driver)
    assert found[0] == "0 " and found[1] == "1 b is NULL"
    assert found[2] == "1 a->data is not a multiple of 4 bytes: 0x1002"
    assert found[3].startswith("1 a->dynamic_shapes[0] is -1, and the function was compiled for 0 to")
    assert "b_shape0 is not a_shape0" in found[4]
    assert found[5] == "0 " and driver.calls().launches == []  # nothing to do


def test_loading_is_counted(exported: Path, driver: Driver) -> None:
    body = """
  add_Kernel_Module_t other;
  show(add_Kernel_Module_Load(&module)); show(add_Kernel_Module_Load(&other));
  show(add_Kernel_Module_Unload(&other)); show(add_Kernel_Module_Unload(&other));
  show(call());
  show(add_Kernel_Module_Unload(&module)); show(call());
  show(add_Kernel_Module_Load(&module)); show(call()); show(add_Kernel_Module_Unload(&module));
"""
    codes = [line.split()[0] for line in lines_of(body, exported, driver)]
    found = driver.calls()
    assert codes == ["0", "0", "0", "0", "0", "0", "3", "0", "0", "0"]
    assert len(found.loads) == len(found.unloads) == 2 and len(found.launches) == 2


def test_threads(exported: Path, driver: Driver) -> None:
    source = MAIN.format(
        body="""
  pthread_t threads[8];
  long i, wrong = 0;
  for (i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (i = 0; i < 8; ++i) { void *r; pthread_join(threads[i], &r); wrong += r != NULL; }
  printf("%ld\\n", wrong);
"""
    ).replace(
        "int main",
        """#include <pthread.h>
static void *work(void *unused) {
  add_Kernel_Module_t mine;
  add_Tensor_a_t bad = {(void *)0x1001, {100}};
  int i;
  (void)unused;
  if (add_Kernel_Module_Load(&mine)) return &module;
  for (i = 0; i < 50; ++i) {
    if (cute_dsl_add_wrapper(&mine, &a, &b, &c, 2.0f, NULL)) return &module;
    if (cute_dsl_add_wrapper(&mine, &bad, &b, &c, 2.0f, NULL) != 1) return &module;
    if (!strstr(add_Get_Error_String(), "0x1001")) return &module;
  }
  return NULL;
}
int main""",
    )
    done = run_c(source, exported, ["add"], driver, environment={"FAKE_SLOW": "30"})
    found = driver.calls()
    assert done.stdout == "0\n", done.stderr
    assert len(found.loads) == 1 and len(found.launches) == 400


def test_devices_and_contexts(exported: Path, driver: Driver) -> None:
    """The module is loaded where it is called: on another device, and again in a context that was made anew."""
    body = """
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*set)(void *); void (*reset)(void);
  void *found = dlsym(driver, "cuCtxSetCurrent"); memcpy(&set, &found, sizeof set);
  found = dlsym(driver, "fake_reset"); memcpy(&reset, &found, sizeof reset);
  show(add_Kernel_Module_Load(&module)); show(call());
  set((void *)2); show(call()); set((void *)1); show(call());
  set(NULL); show(call());
  reset(); show(call());
  show(add_Kernel_Module_Unload(&module));
"""
    source = MAIN.format(body=body).replace("#include <stdint.h>", "#include <stdint.h>\n#include <dlfcn.h>")
    done = run_c(source, exported, ["add"], driver)
    found = driver.calls()
    assert done.stdout.split() == ["0"] * 7, done.stdout
    assert len(found.loads) == 3 and len(found.launches) == 5
    assert len(found.unloads) == 1  # the contexts that are gone took theirs along


@pytest.mark.parametrize("name, code", [("cuInit", 999), ("cuModuleLoadData", 999), ("cuLaunchKernelEx", 999)])
def test_driver_errors_are_reported_with_their_text(name: str, code: int, exported: Path, driver: Driver) -> None:
    body = "  const int32_t code = add_Kernel_Module_Load(&module); show(code ? code : call());"
    (line,) = lines_of(body, exported, driver, FAKE_FAIL=name)
    assert line.startswith(f"{code} ") and "CUDA_ERROR_UNKNOWN (999): what the driver says" in line


def test_devices_without_code(exported: Path, driver: Driver) -> None:
    body = "  show(add_Kernel_Module_Load(&module)); show(call());"
    loaded, called = lines_of(body, exported, driver, FAKE_CAPABILITY="75")
    assert loaded == "209 add was exported for sm_80, sm_90a; device 0 is sm_75" and called.startswith("3 ")
    assert lines_of(body, exported, driver, FAKE_CAPABILITY="89") == ["0 ", "0 "]  # code for sm_80 runs there
    assert lines_of(body, exported, driver, FAKE_DEVICES="0")[0].startswith("100 the NVIDIA driver shows no GPU")


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(_has_driver(), reason="there is an NVIDIA driver")
def test_exported_code_without_a_driver(exported: Path) -> None:
    (line,) = lines_of("  show(add_Kernel_Module_Load(&module));", exported, None)
    assert line == "34 no NVIDIA driver here: libcuda.so.1 was not found"


@pytest.mark.parametrize("std", ["c99", "c11", "c17"])
def test_the_launcher_has_no_warnings(std: str, exported: Path) -> None:
    for compiler in filter(None, (shutil.which("gcc"), shutil.which("clang"))):
        command = [compiler, f"-std={std}", "-O2", *WARNINGS, "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-c"]
        done = subprocess.run([*command, "add.c", "-o", "/dev/null"], cwd=exported, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_cxx(exported: Path, driver: Driver) -> None:
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler here")
    body = """
  CUTE_DSL_CUDA_ERROR_CHECK(call());
  show(add_Kernel_Module_Load(&module)); show(call()); show(add_Kernel_Module_Unload(&module));
"""
    done = run_c(MAIN.format(body=body), exported, ["add"], driver, cxx=True)
    assert done.stdout.split() == ["0", "0", "0"] and len(driver.calls().launches) == 1
    assert "main.cpp" in done.stderr and "CUDA error 3" in done.stderr


@cute.kernel
def shared_kernel(a: cute.Tensor):
    memory = cute.arch.alloc_smem(cutlass.Float32, 32 * 1024)
    memory[0] = a[0]
    a[1] = memory[0]


@cute.jit
def sized(a: cute.Tensor, grid: cute.Int32, block: cute.Int32, rows: cute.Int32):
    cute.testing.assert_(rows != 13, "13 rows bring bad luck")
    shared_kernel(a).launch(grid=(grid, 96 // rows, 1), block=(block, 1, 1), cluster=(2, 1, 1))


def test_launches_that_no_device_can_do(tmp_path: Path, driver: Driver) -> None:
    tensor: Any = make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(divisibility=8),), assumed_align=16)
    numbers = [cutlass.Int32(1)] * 3
    cute.compile(sized, tensor, *numbers).export_to_c(tmp_path, "sized", gpu_arch="sm_90a")
    cases = [(16, 64, 8), (-1, 64, 8), (16, 2048, 8), (15, 64, 8), (16, 64, 0), (16, 64, 13)]
    show = '  printf("%d %s\\n", (int)code, code ? sized_Get_Error_String() : "");'
    calls = "\n".join(f"  code = cute_dsl_sized_wrapper(&m, &a, {', '.join(map(str, c))});\n{show}" for c in cases)
    source = f"""
#include <stdio.h>
#include "sized.h"
int main(void) {{
  sized_Kernel_Module_t m;
  sized_Tensor_a_t a = {{(void *)0x1000, {{64}}}};
  int32_t code = sized_Kernel_Module_Load(&m);
{calls}
  a.dynamic_shapes[0] = 60;
  code = cute_dsl_sized_wrapper(&m, &a, 2, 1, 8);
  printf("%d %s\\n", (int)code, sized_Get_Error_String());
  return 0;
}}
"""
    done = run_c(source, tmp_path, ["sized"], driver)
    found = done.stdout.splitlines()
    assert found[0] == "0 " and found[1] == "1 shared_kernel: grid -1 along x lies outside 1 to 2147483647"
    assert "block 2048 along x lies outside 1 to 1024" in found[2]
    assert found[3] == "912 shared_kernel: grid 15 along x is not divisible by the cluster's 2"
    assert found[4].startswith("1 ") and found[4].endswith("division by zero in host code")
    assert found[5].startswith("710 ") and found[5].endswith("13 rows bring bad luck")
    assert found[6] == "1 a->dynamic_shapes[0] is 60, and the function was compiled for multiples of 8"
    assert len(driver.calls().launches) == 1


def test_a_small_device(tmp_path: Path, driver: Driver) -> None:
    """128 KiB of shared memory run on sm_80, not on sm_86, whose blocks have 99."""
    executor = cute.compile(sized, from_dlpack_array(), *[cutlass.Int32(1)] * 3)
    with pytest.raises(cutlass.errors.ArgumentError, match="cannot run on sm_86: its blocks take 131072 bytes"):
        executor.export_to_c(tmp_path, "sized", gpu_arch=("sm_80", "sm_86"))
    assert list(tmp_path.iterdir()) == []


def from_dlpack_array() -> Any:
    import numpy as np

    return from_dlpack(np.zeros(64, np.float32))


def test_several_functions_in_one_program_and_in_one_library(tmp_path: Path, driver: Driver) -> None:
    compiled_add().export_to_c(tmp_path, "first")
    compiled_add().export_to_c(object_file_path=tmp_path / "second.o", function_name="two")
    main = """
#include "first.h"
#include "second.h"
int main(void) {
  first_Kernel_Module_t one;
  two_Kernel_Module_t two;
  return first_Kernel_Module_Load(&one) || two_Kernel_Module_Load(&two) || one.code == two.code;
}
"""
    assert run_c(main, tmp_path, ["first", "second"], driver).returncode == 0
    library = tmp_path / "libboth.so"
    assert COMPILER
    objects = [str(tmp_path / f"{n}.o") for n in ("first", "second")]
    subprocess.run([COMPILER, "-shared", "-o", str(library), *objects, "-ldl"], check=True)
    module = cute.runtime.load_module(str(library))
    assert "first" in dir(module) and "two" in dir(module)
    assert len(driver.calls().loads) == 2


REACH = """
#include <stdio.h>
#include "f.h"
int main(void) {
  f_Kernel_Module_t module;
  f_Tensor_a_t a = {(void *)0x1000, {40000, 40}, {60000}};
  f_Tensor_b_t b = {(void *)0x2000, {40000, 40}, {60000}};
  int32_t code = f_Kernel_Module_Load(&module);
  a.dynamic_strides[0] = 40, b.dynamic_strides[0] = 40;
  code = cute_dsl_f_wrapper(&module, &a, &b);
  printf("%d %s\\n", (int)code, code ? f_Get_Error_String() : "");
  a.dynamic_strides[0] = 60000;
  code = cute_dsl_f_wrapper(&module, &a, &b);
  printf("%d %s\\n", (int)code, code ? f_Get_Error_String() : "");
  a.dynamic_strides[0] = INT64_C(5000000000);
  code = cute_dsl_f_wrapper(&module, &a, &b);
  printf("%d %s\\n", (int)code, code ? f_Get_Error_String() : "");
  return 0;
}
"""


@pytest.mark.parametrize("wide", [False, True])
def test_how_far_tensors_reach(wide: bool, tmp_path: Path, driver: Driver) -> None:
    """Offsets of 32 bits do for 2^31 elements; a function that was compiled for more takes more."""
    import numpy as np

    tensors = [from_dlpack(np.zeros((4, 8), np.float16), use_32bit_stride=not wide).mark_layout_dynamic() for _ in "ab"]
    cute.compile(copy, *tensors).export_to_c(tmp_path, "f")
    done = run_c(REACH, tmp_path, ["f"], driver)
    found = done.stdout.splitlines()
    assert found[0] == "0 "
    if wide:
        assert found[1:] == ["0 ", "0 "] and len(driver.calls().launches) == 3
    else:
        assert found[1].startswith("1 a reaches over 2399940039 elements; it was compiled with offsets of 32 bits")
        assert found[2].startswith("1 a->dynamic_strides[0] is 5000000000, and the function was compiled for 0 to")


def test_extents_of_64_bits(tmp_path: Path, driver: Driver) -> None:
    """A stand-in's symbol of 64 bits is a field of 64 bits."""
    n = cute.sym_int64()
    tensor: Any = make_fake_compact_tensor(cutlass.Float32, (n,))
    cute.compile(long_one, tensor).export_to_c(tmp_path, "f")
    assert "int64_t dynamic_shapes[1];" in (tmp_path / "f.h").read_text()
    main = """
#include "f.h"
int main(void) {
  f_Kernel_Module_t module;
  f_Tensor_a_t a = {(void *)0x1000, {INT64_C(300)}};
  return f_Kernel_Module_Load(&module) || cute_dsl_f_wrapper(&module, &a);
}
"""
    assert run_c(main, tmp_path, ["f"], driver).returncode == 0
    assert "grid 3 1 1" in driver.calls().launches[0]


@cute.kernel
def long_kernel(a: cute.Tensor):
    a[cute.arch.block_idx()[0]] = 1.0


@cute.jit
def long_one(a: cute.Tensor):
    long_kernel(a).launch(grid=(cutlass.Int32(a.shape[0] // 100), 1, 1), block=(1, 1, 1))
