"""``tilewright stubs``: what type checkers read of a package `cutlass`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.test_names import documented_modules
from tilewright.cli import main


def test_every_documented_module_has_a_stub(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stubs", str(tmp_path / "typings")]) == 0
    assert "stubs under" in capsys.readouterr().out
    target = tmp_path / "typings" / "cutlass"
    for name in documented_modules():
        path = name.replace(".", "/")
        assert any((target / f"{path}{end}").exists() for end in (".pyi", "/__init__.pyi")), name
    primitives = (target / "experimental" / "primitives.pyi").read_text()
    assert "class mbarrier_try_wait_timelimit(Any): ...\n" in primitives and "class CpReduceOp" not in primitives
    assert "\nfrom tilewright.experimental.primitives import *\n" in primitives
    runtime = (target / "cute" / "experimental" / "host_runtime.pyi").read_text()
    assert "class QueryDeviceWorkspaceFunc(Any): ...\n" in runtime and "import *" not in runtime
    older = (target / "cute" / "nvgpu" / "tcgen05" / "mma.pyi").read_text()
    assert "\nfrom tilewright.cute.nvgpu.tcgen05 import *\n" in older and "class MmaF16BF16SparseOp(Any)" in older
    arch = (target / "cute" / "arch" / "__init__.pyi").read_text()
    assert "\nfrom tilewright.cute.arch import *\n" in arch and "class sext_unpacked_i4_i8_intrinsic(Any)" in arch
    assert "def __getattr__(name: str) -> Any" in (target / "_mlir" / "dialects" / "arith.pyi").read_text()
    assert main(["stubs", str(tmp_path / "typings")]) == 0


def test_another_package_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cutlass").mkdir()
    (tmp_path / "cutlass" / "__init__.py").write_text("VERSION = 1\n")
    assert main(["stubs", str(tmp_path)]) == 2
    assert "has files of another package (__init__.py)" in capsys.readouterr().err
    assert main(["stubs", str(tmp_path / "cutlass" / "__init__.py")]) == 2
    assert "is a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*.pyi")] == []
