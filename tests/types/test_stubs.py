"""The stubs are current, say all names, and are nothing to a program that runs."""

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
FACES = sorted(path for path in MADE if "__getattr__, " in path.with_suffix(".py").read_text(encoding="utf-8"))


def test_stubs_are_current() -> None:
    """Run `python tools/stubs.py` after a change of a table of public names, and commit what it writes."""
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stub_that_is_not_current_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    face = tmp_path / "tilewright" / "face.py"
    face.parent.mkdir()
    face.write_text('__getattr__, __dir__, __all__ = lazily(__name__, {"a.b": "c d=e"}, ("f",))\n')
    monkeypatch.setattr(TOOL, "ROOT", tmp_path)
    monkeypatch.setattr(TOOL, "PACKAGE", face.parent)
    monkeypatch.setattr(sys, "argv", ["stubs.py", "--check"])
    assert TOOL.main() == 1 and "face.pyi is not current: run `python tools/stubs.py`" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["stubs.py"])
    assert TOOL.main() == 0
    text = face.with_suffix(".pyi").read_text()
    assert "from a.b import c as c\nfrom a.b import e as d\nfrom tilewright.face import f as f\n" in text
    monkeypatch.setattr(sys, "argv", ["stubs.py", "--check"])
    assert TOOL.main() == 0
    face.unlink()
    assert TOOL.main() == 1


@pytest.mark.parametrize("path", FACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_stub_has_the_names_that_the_module_shows(path: Path) -> None:
    source = path.relative_to(ROOT).with_suffix("")
    module = importlib.import_module(".".join(source.parts).removesuffix(".__init__"))
    assert set(module.__all__) <= _names(MADE[path])


def _names(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(text).body:
        match node:
            case ast.ImportFrom(module=module, names=[ast.alias(name="*")]):
                assert module is not None
                base = ROOT.joinpath(*module.split("."))
                other = next(p for p in (base.with_suffix(".pyi"), base / "__init__.pyi") if p.exists())
                found |= _names(other.read_text(encoding="utf-8"))
            case ast.ImportFrom(names=names):
                found |= {name.asname for name in names if name.asname}
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def test_importing_the_face_imports_few_modules() -> None:
    """What `import tilewright.cute` loads beyond Python itself: the table of names and nothing that it names."""
    program = (
        "import sys, tilewright.cute; "
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'tilewright'))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["tilewright", "tilewright._lazy", "tilewright.cute"]
