"""Exported functions out of a shared library that a program opens at run time: CuteDSLRuntime.h."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.export.harness import COMPILER, WARNINGS, Driver, needs_compiler, run_c
from tests.export.test_calls import compiled_add
from tilewright.cute.export import aot_config

pytestmark = needs_compiler

MAIN = """
#include <stdio.h>
#include <stdint.h>
#include "CuteDSLRuntime.h"

typedef struct { void *data; int32_t dynamic_shapes[1]; } tensor;
static void show(CuteDSLRT_Error_t e) {
  printf("%s %s\\n", CuteDSLRT_GetErrorName(e), e ? CuteDSLRT_GetLastErrorText() : CuteDSLRT_GetErrorString(e));
}
int main(void) {
  CuteDSLRT_Module_t *module = NULL;
  CuteDSLRT_Function_t *function = NULL;
  tensor a = {(void *)0x1000, {100}}, b = {(void *)0x2000, {100}}, c = {(void *)0x3000, {100}};
  float alpha = 2.0f;
  struct CUstream_st *stream = NULL;
  int32_t code = -7;
  void *arguments[] = {&a, &b, &c, &alpha, &stream, &code};
  show(CuteDSLRT_Module_Load(&module, "add.o"));
  show(CuteDSLRT_Module_Load(&module, "./nothing.so"));
  show(CuteDSLRT_Module_Load(&module, "./libadd.so"));
  show(CuteDSLRT_Module_Get_Function(&function, module, "subtract"));
  show(CuteDSLRT_Module_Get_Function(&function, module, "add"));
  if (!function) return 1;
  show(CuteDSLRT_Module_Get_Function(&function, module, "add"));
  show(CuteDSLRT_Function_Run(function, arguments, 6));
  printf("%d\\n", (int)code);
  show(CuteDSLRT_Function_Run(function, arguments, 5));
  a.data = (void *)0x1001;
  show(CuteDSLRT_Function_Run(function, arguments, 6));
  printf("%d\\n", (int)code);
  show(CuteDSLRT_Module_Destroy(module));
  return 0;
}
"""
EXPECTED = """
CuteDSLRT_Error_FileNotFound link the object file into a shared library (cc -shared): add.o
CuteDSLRT_Error_FileNotFound cannot open the library: ./nothing.so: cannot open shared object file: ...
CuteDSLRT_Error_Success no error
CuteDSLRT_Error_FunctionNotFound the library exports no function of this prefix: subtract
CuteDSLRT_Error_Success no error
CuteDSLRT_Error_Success no error
CuteDSLRT_Error_Success no error
0
CuteDSLRT_Error_InvalidArgument add: 5 arguments are given; there are 6: a, b, c, alpha, stream, the code
CuteDSLRT_Error_CudaError add: a->data is not a multiple of 4 bytes: 0x1001
1
CuteDSLRT_Error_Success no error
""".strip().splitlines()


@pytest.mark.parametrize("cxx", [False, True])
def test_dynamic_loading(cxx: bool, driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cxx and not shutil.which("c++"):
        pytest.skip("no C++ compiler here")
    monkeypatch.chdir(tmp_path)
    compiled_add().export_to_c(tmp_path, "add")
    assert COMPILER
    subprocess.run([COMPILER, "-shared", "-o", "libadd.so", "add.o", "-ldl"], check=True)
    monkeypatch.setenv("CPATH", str(aot_config.INCLUDE))
    done = run_c(MAIN, tmp_path, [], driver, cxx=cxx)
    assert done.returncode == 0, done.stdout + done.stderr
    for got, want in zip(done.stdout.splitlines(), EXPECTED, strict=True):
        assert got.startswith(want.removesuffix("...")) if want.endswith("...") else got == want
    found = driver.calls()
    assert len(found.loads) == len(found.unloads) == len(found.launches) == 1


def test_libraries_of_another_version(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiled_add().export_to_c(tmp_path, "add")
    text = (tmp_path / "add.c").read_text()
    (tmp_path / "add.c").write_text(text.replace("cute_dsl_add_format = 1;", "cute_dsl_add_format = 2;"))
    assert COMPILER
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", "libadd.so", "add.c", "-ldl"], check=True)
    monkeypatch.setenv("CPATH", str(aot_config.INCLUDE))
    done = run_c(MAIN, tmp_path, [], driver)
    assert done.returncode == 1
    assert "CuteDSLRT_Error_VersionMismatch exported by another version; export it again: add" in done.stdout


@pytest.mark.parametrize("flags", [("-std=c99",), ("-std=c17",), ("-x", "c++", "-std=c++17")])
def test_the_header_has_no_warnings(flags: tuple[str, ...], tmp_path: Path) -> None:
    main = tmp_path / "main.c"
    main.write_text('#include "CuteDSLRuntime.h"\nint main(void) { return 0; }\n')
    for compiler in filter(None, (shutil.which("gcc"), shutil.which("clang"))):
        command = [compiler, *flags, *WARNINGS, "-Wshadow", f"-I{aot_config.INCLUDE}", "-c", str(main)]
        done = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_aot_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert aot_config.main(["--cflags", "--libs", "--target", "aarch64-unknown-linux-gnu"]) == 0
    flags, libraries = capsys.readouterr().out.splitlines()
    assert (Path(flags.removeprefix("-I")) / "CuteDSLRuntime.h").exists() and "-ldl" in libraries
    with pytest.raises(SystemExit):
        aot_config.main([])
    assert "say what to print: --includedir" in capsys.readouterr().err
