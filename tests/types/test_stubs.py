"""Generated stubs are current; the stubs of public modules name what is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.types.programs import ROOT
from tilewright import stand_ins


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")  # where it finds its other part
        spec.loader.exec_module(module)
    return module


TOOL = _tool()
MADE: dict[Path, str] = TOOL.stubs()
FACES = sorted(path for path in (ROOT / "tilewright").rglob("*.pyi") if path not in MADE)


def test_stubs_are_current() -> None:
    """Run `python tools/stubs.py` after a change of a table of public names, and commit what it writes."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stub_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    face = tmp_path / "tilewright" / "face.py"
    face.parent.mkdir()
    face.write_text("f = _located(_layout.f)\n")
    layout = face.with_name("layout")
    layout.mkdir()
    (layout / "__init__.pyi").write_text("from tilewright.layout.own import f as f\n")
    (layout / "own.py").write_text('def f() -> int:\n    """One."""\n    return 1\n')
    monkeypatch.setattr(TOOL, "ROOT", tmp_path)
    monkeypatch.setattr(TOOL, "PACKAGE", face.parent)
    monkeypatch.setattr(TOOL, "MADE", {"face.py": TOOL.MADE["lang/tensors/layout_functions.py"]})
    monkeypatch.setattr(sys, "argv", ["stubs.py", "--check"])
    assert TOOL.main() == 1 and "face.pyi is not current: run `python tools/stubs.py`" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["stubs.py"])
    assert TOOL.main() == 0
    made = face.with_suffix(".pyi").read_text()
    assert "def f(*, loc: Any=None, ip: Any=None) -> int:" in made and "return 1" not in made
    monkeypatch.setattr(sys, "argv", ["stubs.py", "--check"])
    assert TOOL.main() == 0
    monkeypatch.setattr(TOOL, "MADE", {})
    assert TOOL.main() == 1


@pytest.mark.parametrize("path", FACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_public_module_shows_what_its_stub_says(path: Path) -> None:
    """Python and type checkers read the same names, and each is there."""
    source = path.relative_to(ROOT).with_suffix("")
    name = ".".join(source.parts).removesuffix(".__init__")
    if name == "tilewright.jax":
        pytest.importorskip("jax")
    module = importlib.import_module(name)
    stub = _names(path.read_text(encoding="utf-8"))
    not_here = {n for n in stand_ins.names(name)}
    assert stub and not stub & not_here
    assert set(module.__all__) >= stub - {"__version__", "load_ipython_extension", "unload_ipython_extension",
                                          "is_available", "checkCudaErrors"}  # fmt: skip
    assert set(dir(module)) == set(module.__all__)
    for shown in stub:
        if shown != "torch":
            assert getattr(module, shown) is not None


def _names(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(text).body:
        match node:
            case ast.ImportFrom(names=names):
                assert all(name.asname in (None, name.name) for name in names)  # checkers do not see another name
                found |= {name.asname for name in names if name.asname}
            case (
                ast.FunctionDef(name=name)
                | ast.AnnAssign(target=ast.Name(id=name))
                | ast.Assign(targets=[ast.Name(id=name)])
            ):
                found.add(name)
    return found


def test_importing_the_face_imports_few_modules() -> None:
    """What `import tilewright.cute` loads beyond Python itself: nothing that its stub names."""
    program = (
        "import sys, tilewright.cute; "
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'tilewright'))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["tilewright", "tilewright._names", "tilewright.cute"]
