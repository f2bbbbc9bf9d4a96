"""Type stubs of a package ``cutlass``, for programs that say ``import cutlass``: type checkers know nothing of the
import hook, so each stub re-exports the module of this package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilewright import stand_in_names
from tilewright.errors import ArgumentError

OURS = Path(__file__).parent.parent
# Of these every module can be imported by programs; of other packages the package alone.
WHOLE = ("_mlir", "base_dsl", "cute", "experimental", "jax", "utils")
FACES = (
    "__init__",
    "cuda/__init__",
    "cutlass_dsl",
    "errors",
    "gemm/__init__",
    "layout/__init__",
    "pipeline/__init__",
    "sim/__init__",
    "testing",
    "torch",
    "viz/__init__",
)
ANY_NAME = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def write(folder: Path) -> list[Path]:
    """Write ``folder/cutlass/...``; the files. pyright reads stubs in ``typings`` beside its settings by itself, mypy
    where ``mypy_path`` says.

    Raises ArgumentError where ``folder/cutlass`` has files other than such stubs, or cannot be written.
    """
    target = folder / "cutlass"
    for part in (folder, target):
        if part.exists() and not part.is_dir():
            raise ArgumentError(f"{part} is a file: the stubs need a folder")
    for path in target.rglob("*"):
        if path.is_file() and (path.suffix != ".pyi" or "tilewright" not in path.read_text(encoding="utf-8")):
            raise ArgumentError(f"{target} has files of another package ({path.name}): take another folder")
    written = []
    try:
        for source in _modules():
            path = (target / source).with_suffix(".pyi")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_stub(source), encoding="utf-8", newline="\n")
            written.append(path)
    except OSError as error:
        raise ArgumentError(f"cannot write {target}: {error.strerror}; take another folder") from None
    return written


def _modules() -> Iterator[Path]:
    """The modules by their paths under our package."""
    yield from (Path(f"{face}.py") for face in FACES)
    for package in WHOLE:
        yield from (path.relative_to(OURS) for path in sorted((OURS / package).rglob("*.py")))
    for module in sorted(stand_in_names.modules()):
        path = Path(*module.split("."))
        is_package = any(other.startswith(f"{module}.") for other in stand_in_names.modules())
        yield path / "__init__.py" if is_package else path.with_suffix(".py")


def _stub(source: Path) -> str:
    """All names of our module, or of the one that it is another name of; and a class for each stand-in."""
    path = ".".join(source.with_suffix("").parts).removesuffix("__init__").removesuffix(".")
    same = stand_in_names.alias(path)
    module = same or f"tilewright.{path}".removesuffix(".")
    shown = f"# {module}, by `tilewright stubs`\n"
    if same or path not in stand_in_names.modules():
        shown += f"from {module} import *\n"
    if stand_in_names.is_internal(path):
        return shown + ANY_NAME
    missing = sorted({*stand_in_names.names(module)} - {*stand_in_names.modules_under(path)})
    classes = "".join(f"class {name}(Any): ...\n" for name in missing)
    return shown + (f"from typing import Any\n{classes}" if missing else "")
