"""What export_to_c writes, and what it refuses before it writes anything."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.export.harness import Driver, needs_compiler, run_c
from tests.export.test_calls import compiled_add, copy
from tilewright import cute
from tilewright.cute.nvgpu import warp, warpgroup
from tilewright.cute.runtime import from_dlpack, load_module
from tilewright.errors import ArgumentError, CompileError, ConstraintError
from tilewright.export import files
from tilewright.export.names import identifier


def listing(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*"))


@needs_compiler
def test_files_and_names(tmp_path: Path) -> None:
    executor = compiled_add()
    executor.export_to_c(str(tmp_path / "deep" / "folder"), "added", gpu_arch="sm_80")
    executor.export_to_c(file_path=tmp_path, file_name="added", function_prefix="plus")
    executor.export_to_c(tmp_path / "one.o", function_name="one")  # the form documented for TVM FFI
    assert listing(tmp_path / "deep") == ["added.c", "added.h", "added.o", "folder"]
    assert listing(tmp_path)[:3] == ["added.c", "added.c", "added.h"]
    assert (
        "cute_dsl_plus_wrapper(plus_Kernel_Module_t *module, const plus_Tensor_a_t *a"
        in (tmp_path / "added.h").read_text()
    )
    assert "one_Kernel_Module_Load" in (tmp_path / "one.h").read_text()
    assert cute.runtime.find_runtime_libraries() == []


def test_export_without_a_c_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No object file, a warning, and the C source can be loaded."""
    monkeypatch.setattr(files, "compiler", list)
    with pytest.warns(UserWarning, match="no C compiler .* so add.o was not made") as seen:
        compiled_add().export_to_c(tmp_path, "add")
    assert seen[0].filename == __file__
    assert listing(tmp_path) == ["add.c", "add.h"]
    assert load_module(tmp_path / "add.c").add.architectures == ["sm_90a"]


@needs_compiler
def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/bin/false -m64")
    with pytest.raises(CompileError, match="/bin/false -m64 .* failed"):
        compiled_add().export_to_c(tmp_path, "add")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompileError, match="the C compiler that CC names is not here: 'no-such-compiler'"):
        compiled_add().export_to_c(tmp_path, "add")
    assert listing(tmp_path) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("f", "my-file"), "file_name .*'my-file'.*letters, digits and underscores.*'my_file' would do"),
        (("f", "add", "2add"), "function_prefix='2add'.*a letter first: 'v2add' would do"),
        (("f", "add", "größe"), "function_prefix='größe'"),
        (("f", "add", "register"), "function_prefix='register' is a word of C"),
        (("f", "class"), "is a word of C"),
        (("f", "../add"), "file_name='../add' is the base name of files, without a folder"),
        (("f", ""), "file_name='' is the base name"),
        (("f",), "'f' is a folder, so file_name is needed"),
    ],
)
def test_names_that_c_cannot_have(
    arguments: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=message):
        compiled_add().export_to_c(*arguments)
    assert listing(tmp_path) == []


def test_only_the_files_of_another_module_are_kept(tmp_path: Path) -> None:
    """Modules of one prefix can lie in a folder: caches of libraries name the files by their contents."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled_add().export_to_c(tmp_path, "first", "add")
        compiled_add().export_to_c(tmp_path, "first", "add")  # written again
        compiled_add().export_to_c(tmp_path, "second", "add")
        before = (tmp_path / "second.h").read_text()
        with pytest.raises(ArgumentError, match="second.h is of another module, and would be overwritten"):
            compiled_add().export_to_c(tmp_path, "second", "sum")
    assert (tmp_path / "second.h").read_text() == before


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="file_path='.*file' is a file, not a folder"):
        compiled_add().export_to_c(tmp_path / "file", "add")
    with pytest.raises(ArgumentError, match="cannot write to file_path=.*file/sub"):
        compiled_add().export_to_c(tmp_path / "file" / "sub", "add")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if not os.access(locked, os.W_OK):
        with pytest.raises(ArgumentError, match="cannot write to file_path=.*locked"):
            compiled_add().export_to_c(locked, "add")


@cute.kernel
def wgmma_kernel(a: cute.Tensor):
    warpgroup.fence()
    a[0] = 1.0


@cute.kernel
def ldmatrix_kernel(a: cute.Tensor):
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    a[0] = 1.0


@cute.jit
def run_wgmma(a: cute.Tensor):
    wgmma_kernel(a).launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.jit
def run_cluster(a: cute.Tensor):
    ldmatrix_kernel(a).launch(grid=(1, 1, 1), block=(128, 1, 1))


@pytest.mark.parametrize("function, instruction", [(run_wgmma, "wgmma"), (run_cluster, "cluster")])
def test_architectures_without_an_instruction(function: Any, instruction: str, tmp_path: Path) -> None:
    executor = cute.compile(function, from_dlpack(np.zeros(4, np.float32)))
    with pytest.raises(ConstraintError, match=f"(?s)(?=.*sm_80)(?=.*{instruction})"):
        executor.export_to_c(tmp_path, "f", gpu_arch=("sm_90a", "sm_80"))
    with pytest.raises(ArgumentError, match="unknown architecture 'sm_ninety'"):
        executor.export_to_c(tmp_path, "f", gpu_arch="sm_ninety")
    assert listing(tmp_path) == []


@cute.jit
def no_kernel(a: cute.Int32):
    return


@cute.jit
def gives_a_number(a: cute.Tensor):
    copy(a, a)
    return cute.size(a)


@cute.jit
def reads_memory(a: cute.Tensor):
    wgmma_kernel(a).launch(grid=(cutlass.Int32(a[0]), 1, 1), block=(128, 1, 1))


def test_host_code_without_a_c_form(tmp_path: Path) -> None:
    array = np.zeros((4, 4), np.float32)
    with pytest.raises(ArgumentError, match="no_kernel launches no kernel"):
        cute.compile(no_kernel, 1).export_to_c(tmp_path, "f")
    with pytest.raises(ArgumentError, match="gives_a_number returns a number"):
        cute.compile(gives_a_number, array).export_to_c(tmp_path, "f")
    with pytest.raises(ArgumentError, match=r"test_files.py:\d+: `load` in host code has no C form"):
        cute.compile(reads_memory, array[0]).export_to_c(tmp_path, "f", gpu_arch="sm_90a")
    assert listing(tmp_path) == []


class Mine:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __get_mlir_types__(self) -> Any:
        return self.values.__get_mlir_types__()

    def __c_pointers__(self) -> Any:
        return self.values.__c_pointers__()

    def __extract_mlir_values__(self) -> Any:
        return self.values.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return Mine(self.values.__new_from_mlir_values__(values))


@cute.jit
def takes_mine(mine: Any):
    wgmma_kernel(mine.values).launch(grid=(1, 1, 1), block=(128, 1, 1))


def test_arguments_without_a_c_form(tmp_path: Path) -> None:
    mine = Mine(from_dlpack(np.zeros(4, np.float32)))
    with pytest.raises(ArgumentError, match="argument 'mine' is Mine, which has no C form"):
        cute.compile(takes_mine, mine).export_to_c(tmp_path, "f", gpu_arch="sm_90a")
    assert listing(tmp_path) == []


@cute.jit
def awkward(register: cute.Tensor, module: cute.Int32, place: cute.Int32, tw_go: cute.Int32, größe: cute.Int32):
    wgmma_kernel(register).launch(grid=(module + place, tw_go, größe), block=(128, 1, 1))


@needs_compiler
def test_arguments_with_awkward_names(tmp_path: Path) -> None:
    cute.compile(awkward, np.zeros(4, np.float32), 1, 1, 1, 1).export_to_c(tmp_path, "f", gpu_arch="sm_90a")
    expected = "f_Tensor_register__t *register_, int32_t module_2, int32_t place_2, int32_t vtw_go, int32_t gr_e)"
    assert expected in (tmp_path / "f.h").read_text()


def test_identifiers() -> None:
    assert [identifier(x) for x in ("a.b[0]", "int", "2d", "[]", "NULL")] == ["a_b_0", "int_", "v2d", "v", "NULL_"]


def test_the_options_of_compile_hold(tmp_path: Path) -> None:
    """gpu-arch is what export_to_c compiles for unless it is told otherwise."""
    executor = cute.compile(copy, *[np.zeros((4, 4), np.float32)] * 2, options="--gpu-arch sm_89")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        executor.export_to_c(tmp_path, "f")
        assert "compiled by Tilewright" in (tmp_path / "f.h").read_text() and "sm_89" in (tmp_path / "f.h").read_text()
        executor.export_to_c(tmp_path, "f", gpu_arch=["sm_80", "sm_80", "sm_86"])
    assert load_module(tmp_path / "f.c").f.architectures == ["sm_80", "sm_86"]
    assert warp is not None


PERCENT = """
import tilewright as cutlass
from tilewright import cute
from tests.export.test_files import wgmma_kernel

@cute.jit
def percent(a: cute.Tensor, n: cutlass.Int32):
    cute.testing.assert_(n > 3, "100%s of it, %d, \\\\ \\"quoted\\" ??/ \\n und größer")
    wgmma_kernel(a).launch(grid=(100 // n, 1, 1), block=(128, 1, 1), smem=n)
"""


@needs_compiler
def test_texts_are_no_formats(driver: Driver, tmp_path: Path) -> None:
    """A path and a message with what means something to printf and to C."""
    source = tmp_path / "100%s %n.py"
    source.write_text(PERCENT, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), scope)
    executor = cute.compile(scope["percent"], np.zeros(4, np.float32), 5)
    executor.export_to_c(tmp_path, "f", gpu_arch="sm_90a")
    main = """
#include <stdio.h>
#include "f.h"
int main(void) {
  f_Kernel_Module_t module;
  f_Tensor_a_t a = {(void *)16, {4}};
  f_Kernel_Module_Load(&module);
  f_Kernel_Module_Unload(&module);
  if (cute_dsl_f_wrapper(&module, &a, 3) == 0) return 1;
  f_Kernel_Module_Load(&module);
  cute_dsl_f_wrapper(&module, &a, 3);
  puts(f_Get_Error_String());
  cute_dsl_f_wrapper(&module, &a, -1);
  puts(f_Get_Error_String());
  return 0;
}
"""
    done = run_c(main, tmp_path, ["f"], driver)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{source}:") and '100%s of it, %d, \\ "quoted" ??/ \n und größer\n' in done.stdout


@cute.jit
def sized(a: cute.Tensor, smem: cutlass.Int32):
    wgmma_kernel(a).launch(grid=(1, 1, 1), block=(128, 1, 1), smem=smem)


@needs_compiler
def test_shared_memory_of_a_negative_size(driver: Driver, tmp_path: Path) -> None:
    cute.compile(sized, np.zeros(4, np.float32), 5).export_to_c(tmp_path, "f", gpu_arch="sm_90a")
    main = """
#include <stdio.h>
#include "f.h"
int main(void) {
  f_Kernel_Module_t module;
  f_Tensor_a_t a = {(void *)16, {4}};
  f_Kernel_Module_Load(&module);
  cute_dsl_f_wrapper(&module, &a, -1);
  puts(f_Get_Error_String());
  return cute_dsl_f_wrapper(&module, &a, 0);
}
"""
    done = run_c(main, tmp_path, ["f"], driver)
    assert done.returncode == 0 and "-1 bytes of shared memory are given, its allocations need 0" in done.stdout


@needs_compiler
def test_the_same_function_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        compiled_add().export_to_c(tmp_path / folder, "add")
    for name in ("add.h", "add.c", "add.o"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@needs_compiler
def test_sizes_and_constants_in_the_header(tmp_path: Path) -> None:
    """Arrays of static layouts have their size as a macro, the exporter's own numbers too."""
    a, b = from_dlpack(np.zeros((4, 6), np.float16)[:, :5]), np.zeros((4, 5), np.float16)
    executor = cute.compile(copy, a, b)
    executor.export_to_c(tmp_path, "first", gpu_arch="sm_80", constants={"WORKSPACE_BYTES": 1 << 40, "LEAST": -1})
    text = """
#include <stdio.h>
#include "first.h"
int main(void) {
  printf("%lld %lld %lld", (long long)first_Tensor_a_BYTES, (long long)first_WORKSPACE_BYTES, (long long)first_LEAST);
  return 0;
}
"""
    assert run_c(text, tmp_path, ["first"]).stdout.split() == [str(2 * (3 * 6 + 5)), str(1 << 40), "-1"]
    assert "first_Tensor_b_BYTES" not in (tmp_path / "first.h").read_text()
    for constants, text in (({"2x": 1}, "2x"), ({"X": 1.5}, "1.5"), ({"X": 1 << 64}, "64 bits"), ({"X": True}, "True")):
        with pytest.raises(ArgumentError, match=text):
            executor.export_to_c(tmp_path, "second", constants=constants)
    assert "second.h" not in listing(tmp_path)


@needs_compiler
def test_an_object_file_of_any_name_is_written_alone(tmp_path: Path) -> None:
    """As caches of libraries do it: written under a temporary name, then moved, and loaded back."""
    given = tmp_path / "kernel.o.tmp.123"
    compiled_add().export_to_c(object_file_path=str(given), function_name="add")
    assert [path.name for path in tmp_path.iterdir()] == [given.name]
    given.rename(tmp_path / "kernel.o")
    assert dir(load_module(tmp_path / "kernel.o"))[-1] == "add"
