"""Pages of the API: for each public module its names, each with its signature and docstring (by mkdocstrings).

What is public is read from the modules themselves. A name is described where it is first in ``PAGES``, or in its
``HOME``; other modules that have it refer to that place.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tools.website.docstrings import markdown

# A page, and the modules on it.
PAGES: dict[str, tuple[str, ...]] = {
    "layout": ("tilewright.layout",),
    "numbers": ("tilewright",),
    "cute": ("tilewright.cute", "tilewright.cute.runtime", "tilewright.cute.testing", "tilewright.cute.experimental"),
    "math": ("tilewright.cute.math",),
    "arch": ("tilewright.cute.arch", "tilewright.experimental.primitives"),
    "nvgpu": (
        "tilewright.cute.nvgpu",
        "tilewright.cute.nvgpu.warp",
        "tilewright.cute.nvgpu.warpgroup",
        "tilewright.cute.nvgpu.cpasync",
        "tilewright.cute.nvgpu.common",
    ),
    "pipeline": ("tilewright.pipeline",),
    "utils": ("tilewright.utils", "tilewright.utils.hopper_helpers"),
    "gemm": ("tilewright.gemm", "tilewright.gemm.epilogue.functions"),
    "sim": (
        "tilewright.sim",
        "tilewright.sim.checks",
        "tilewright.sim.debug",
        "tilewright.sim.exploration",
        "tilewright.sim.mutation",
        "tilewright.sim.tracing",
    ),
    "analysis": ("tilewright.analysis",),
    "viz": ("tilewright.viz", "tilewright.cute_viz"),
    "cuda": ("tilewright.cuda", "tilewright.export"),
    "frameworks": ("tilewright.torch", "tilewright.jax", "tilewright.compat"),
    "testing": ("tilewright.testing", "tilewright.errors"),
}

# Names described on the page of this module, though another module of PAGES has them earlier.
HOME = {"Tensor": "tilewright.cute"}

TITLES = {
    "layout": "Layouts",
    "numbers": "Numbers and loops",
    "cute": "cute",
    "math": "cute.math",
    "arch": "cute.arch",
    "nvgpu": "cute.nvgpu",
    "pipeline": "pipeline",
    "utils": "utils",
    "gemm": "gemm",
    "sim": "sim",
    "analysis": "analysis",
    "viz": "viz",
    "cuda": "cuda and export",
    "frameworks": "PyTorch, JAX, import cutlass",
    "testing": "testing and errors",
}


@dataclass
class Module:
    """A public module: what is described on its page, what elsewhere, and plain values."""

    name: str
    summary: str
    described: list[tuple[str, str]] = field(default_factory=list)  # (name, where it is defined)
    elsewhere: list[tuple[str, str]] = field(default_factory=list)  # (name, where the same is defined)
    values: list[tuple[str, str]] = field(default_factory=list)  # (name, text)


def definition(value: Any) -> str:
    """``package.module.name`` of a function or class that can be found under it, else "".

    >>> from tilewright.layout import Layout
    >>> definition(Layout), definition(3)
    ('tilewright.layout.layout.Layout', '')
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or not module.startswith("tilewright") or not callable(value):
        return ""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return ""
    return f"{module}.{name}" if callable(found) else ""


@cache
def written(module: str) -> frozenset[str]:
    """The functions and classes that the module's source defines by ``def`` and ``class``: mkdocstrings reads these."""
    tree = ast.parse(Path(inspect.getfile(importlib.import_module(module))).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))


def entry_text(name: str, where: str) -> str:
    """The entry of a name: mkdocstrings' directive, or what Python says of a function that another one has made."""
    module, _, qualified = where.rpartition(".")
    if qualified in written(module):
        return f"::: {where}\n    options:\n      heading: {name}\n      heading_level: 3\n"
    value = getattr(importlib.import_module(module), qualified)
    shown = f"```python\n{name}{inspect.signature(value)}\n```"
    return f"### {name} {{ #{where} }}\n\n{shown}\n\n{markdown(inspect.getdoc(value) or '')}\n"


def public(module: Any) -> list[str]:
    """The public names of a module: its ``__all__``, else what it defines itself."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    own = (name for name in vars(module) if not name.startswith("_"))
    return sorted(name for name in own if getattr(getattr(module, name), "__module__", None) == module.__name__)


def modules() -> dict[str, list[Module]]:
    """The modules of each page. Every definition is described once."""
    seen: set[str] = set()
    pages: dict[str, list[Module]] = {}
    for page, names in PAGES.items():
        pages[page] = []
        for name in names:
            module = importlib.import_module(name)
            entry = Module(name, markdown(inspect.getdoc(module) or ""))
            pages[page].append(entry)
            for public_name in public(module):
                value = getattr(module, public_name)
                if inspect.ismodule(value):
                    continue
                where = definition(value)
                if not where:
                    entry.values.append((public_name, value_text(value)))
                elif where in seen or HOME.get(public_name, name) != name:
                    entry.elsewhere.append((public_name, where))
                else:
                    seen.add(where)
                    entry.described.append((public_name, where))
    return pages


def value_text(value: Any) -> str:
    text = " ".join(str(value).split()).replace("typing.", "").replace("tilewright.", "")
    return text if len(text) <= 100 and " at 0x" not in text else f"a {type(value).__name__}"


def page_text(page: str, entries: list[Module], homes: dict[str, str]) -> str:
    """The Markdown of a page; ``homes`` has the page of each definition."""
    parts = [f"# {TITLES[page]}\n"]
    for entry in entries:
        parts.append(f"## {entry.name} {{ #{entry.name} }}\n\n{entry.summary}\n")
        for name, where in entry.described:
            parts.append(entry_text(name, where))
        if entry.elsewhere:
            links = (f"[`{name}`]({homes[where]}.md#{where})" for name, where in entry.elsewhere)
            parts.append(f"Also in `{entry.name}`: {', '.join(links)}.\n")
        if entry.values:
            rows = (f"| `{name}` | `{text.replace('|', chr(92) + '|')}` |" for name, text in entry.values)
            parts.append("| value | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


ASSUMED = """Examples assume

    import numpy as np
    from tilewright import cute
    from tilewright.cute import arch
    from tilewright.testing import per_thread
"""


def index_text(pages: dict[str, list[Module]]) -> str:
    """The first page of the reference: which module is on which page, with its first line."""
    lines = [
        "# API reference\n",
        "What public modules hold, from their docstrings.\n",
        f"{ASSUMED}\n",
        "| module | |",
        "|---|---|",
    ]
    for page, entries in pages.items():
        for entry in entries:
            lines.append(f"| [`{entry.name}`]({page}.md#{entry.name}) | {entry.summary.split(chr(10))[0]} |")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write the pages into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = modules()
    homes = {where: page for page, entries in pages.items() for entry in entries for _, where in entry.described}
    for page, entries in pages.items():
        (folder / f"{page}.md").write_text(page_text(page, entries, homes), encoding="utf-8")
    (folder / "index.md").write_text(index_text(pages), encoding="utf-8")
