"""The stubs of public modules name what is there."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.types.programs import ROOT
from tilewright import stand_in_names

FACES = sorted((ROOT / "tilewright").rglob("*.pyi"))


@pytest.mark.parametrize("path", FACES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_public_module_shows_what_its_stub_says(path: Path) -> None:
    """Python and type checkers read the same names, and each is there."""
    source = path.relative_to(ROOT).with_suffix("")
    name = ".".join(source.parts).removesuffix(".__init__")
    if name == "tilewright.jax":
        pytest.importorskip("jax")
    module = importlib.import_module(name)
    stub = _names(path.read_text(encoding="utf-8"))
    not_here = {n for n in stand_in_names.names(name)}
    assert stub and not stub & not_here
    assert set(module.__all__) >= stub - {
        "__version__",
        "load_ipython_extension",
        "unload_ipython_extension",
        "is_available",
        "checkCudaErrors",
    }
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
