"""Write the type stubs of the modules whose names are found at first use: a ``.pyi`` beside each.

    python tools/stubs.py            write what is not current
    python tools/stubs.py --check    say what is not current, and fail

Such a module keeps its names in one table (``tilewright/_lazy.py``), which type checkers cannot read. Its stub says the
same in imports. Nothing is imported here; the sources are read.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tilewright"
HEAD = "# Made by `python tools/stubs.py` from {source}; do not edit.\n# ruff: noqa: E501, F401, F403, I001, UP\n"
METHODS = {"lang/numbers/operator_types.py"}  # where aliases of methods are written out: mypy needs their types early
LIFTED = "lang/tensors/layout_functions.py"  # functions of tilewright.layout, changed by one of these:
LIFTS = {
    # Pairs: (type of the first parameter, type of the result). A type variable for both kinds of layouts would let
    # pyright believe that Any is a Tensor: it takes the first of overloads that fit if the others give Any.
    "_on_layout": (("Tensor",) * 2, ("Layout",) * 2, ("ComposedLayout",) * 2, ("Any",) * 2),
    "_like_layout": (("Layout",) * 2, ("ComposedLayout",) * 2, ("Any",) * 2),
    "_of_layout": (None,),  # as it is
    "_of_extents": (None,),
    "_located": (None,),
}
TYPES = {
    "Tensor": "tilewright.lang.tensors.tensor", "Layout": "tilewright.layout.layout",
    "ComposedLayout": "tilewright.layout.composed",
}  # fmt: skip
NOT_HERE = '''class {name}(Any):  # type: ignore[misc]
    """Not here yet: it belongs to the instructions of sm_100."""'''


def stubs() -> dict[Path, str]:
    """Every stub with its text."""
    made = {source.with_suffix(".pyi"): stub(source) for source in sorted(PACKAGE.rglob("*.py"))}
    return {path: text for path, text in made.items() if text}


def stub(source: Path) -> str:
    """The stub of a module; empty where it needs none."""
    name, text = source.relative_to(PACKAGE).as_posix(), source.read_text(encoding="utf-8")
    if name == LIFTED:
        return lifted(source, ast.parse(text))
    if "__getattr__, " not in text and name not in METHODS:
        return ""
    tree = ast.parse(text)
    table = next(filter(None, map(_table, tree.body)), None)
    if table is None and name not in METHODS:
        return ""
    module = ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    lines = sorted(set(_shown(module, table))) if table else []
    lines, own = [x for x in lines if "import" in x], [x for x in lines if "import" not in x]
    own += [definition for node in tree.body if (definition := _definition(node, text.splitlines()))]
    used = {node.id for text in own for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    lines = [*_imports(tree, used), *(["from typing import Any"] if "Any" in used else []), *lines]
    head = HEAD.format(source=source.relative_to(ROOT).as_posix()) + f'"""{ast.get_docstring(tree, clean=False)}"""\n'
    return "\n".join([head, *dict.fromkeys(lines), *(f"\n{text}" for text in own)]) + "\n"


def _table(node: ast.stmt) -> ast.Call | None:
    """The call whose result a statement unpacks into ``__getattr__`` and others."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Tuple):
        first = node.targets[0].elts[0]
        if isinstance(first, ast.Name) and first.id == "__getattr__":
            return node.value
    return None


def _shown(module: str, call: ast.Call) -> Iterator[str]:
    """A statement for each name that ``lazily``, ``names_of`` or ``sm100.names`` gives ``module``."""
    match ast.unparse(call.func):
        case "lazily":
            table, *rest = map(ast.literal_eval, call.args[1:])
            for source, names in table.items():
                for name in names.split():
                    here, _, there = name.partition("=")
                    yield f"from {source} import {there or here} as {here}"
            for child in rest[0] if rest else ():
                yield f"from {module} import {child} as {child}"
        case "names_of":
            yield f"from {ast.literal_eval(call.args[0])} import *"
        case "sm100.names":
            for name in ast.literal_eval(call.args[1]).split():
                yield NOT_HERE.format(name=name)
        case other:
            raise SystemExit(f"stubs: {module} takes its names from {other}(...), which is not known here")


def _definition(node: ast.stmt, text: list[str]) -> str:
    """What a stub says of a function, class, constant or alias that the module defines itself; empty for others."""
    match node:
        case ast.FunctionDef():
            return _function(node, text)
        case ast.ClassDef():
            return _class(node, text)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
            return f"{name}: {type(value).__name__}"
        case ast.Assign(targets=[ast.Name(id=name)]) if name != "__all__" and not isinstance(node.value, ast.Tuple):
            return _lines(node, text)
    return ""


def _lines(node: ast.stmt, text: list[str], end: int | None = None) -> str:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return "\n".join(text[first - 1 : end or node.end_lineno])


def _function(node: ast.FunctionDef, text: list[str]) -> str:
    """The function with its docstring in the place of its body."""
    if ast.unparse(node.body[0]) == "...":
        return _lines(node, text)
    indent = " " * node.body[0].col_offset
    if ast.get_docstring(node):
        return _lines(node, text, node.body[0].end_lineno) + f"\n{indent}..."
    return _lines(node, text, node.body[0].lineno - 1) + f"\n{indent}..."


def _class(node: ast.ClassDef, text: list[str]) -> str:
    """The class; after overloads no implementation; ``__sub__ = __add__`` as a method with the same overloads."""
    methods: dict[str, list[str]] = {}
    members = [_lines(node, text, node.body[0].lineno - 1)]
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            known = methods.setdefault(member.name, [])
            if member.decorator_list or not known:
                known.append(_function(member, text))
                members.append(known[-1])
        elif isinstance(member, ast.Assign) and isinstance(member.value, ast.Name) and member.value.id in methods:
            for name in map(ast.unparse, member.targets):
                known = methods[member.value.id]
                members += [method.replace(f"def {member.value.id}(", f"def {name}(", 1) for method in known]
        else:
            members.append(_lines(member, text))
    return "\n".join(members)


def _imports(tree: ast.Module, used: set[str]) -> Iterator[str]:
    """The module's own imports, one a line, of which its definitions have need and those that it shows."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for name in node.names:
                if (name.asname or name.name) in used or name.asname == name.name:
                    yield f"from {node.module} import {ast.unparse(name)}"


def lifted(source: Path, tree: ast.Module) -> str:
    """The stub of LIFTED: each function with the parameters and the text of its namesake, and ``loc`` and ``ip``."""
    homes = {
        name.name: f"{node.module}" for node in ast.parse((PACKAGE / "layout/__init__.py").read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom) for name in node.names
    }  # fmt: skip
    functions, imports = [], {"from typing import Any", "from typing import overload"}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name()], value=ast.Call(ast.Name(kind), [ast.Attribute(attr=namesake)])):
                module = homes[namesake]
                home = ast.parse(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8"))
                variants = list(_variants(home, namesake, LIFTS[kind]))
                used = {n.id for f in variants for n in ast.walk(f) if isinstance(n, ast.Name)}
                imports |= {f"from {TYPES[n]} import {n}" for n in used & set(TYPES)}
                imports |= set(_imports(home, used))
                imports |= {f"from {module} import {n}" for n in used & _defined(home)}
                functions += [ast.unparse(ast.fix_missing_locations(f)) for f in variants]
    head = HEAD.format(source=source.relative_to(ROOT).as_posix()) + f'"""{ast.get_docstring(tree, clean=False)}"""\n'
    return "\n".join([head, *sorted(imports), "", *functions]) + "\n"


def _defined(home: ast.Module) -> set[str]:
    classes = {node.name for node in home.body if isinstance(node, ast.ClassDef)}
    return classes | {
        name.id for node in home.body if isinstance(node, ast.AnnAssign | ast.Assign)
        for name in ([node.target] if isinstance(node, ast.AnnAssign) else node.targets) if isinstance(name, ast.Name)
    }  # fmt: skip


def _variants(home: ast.Module, name: str, lifts: tuple[tuple[str, str] | None, ...]) -> Iterator[ast.FunctionDef]:
    """The signatures of a function: its own, or those with other types of the first parameter and of the result."""
    *overloads, last = [n for n in home.body if isinstance(n, ast.FunctionDef) and n.name == name]
    doc = ast.get_docstring(last, clean=False)
    wanted = [(last, lift) for lift in lifts]
    if overloads:  # they say more than the lifts of layouts
        wanted = [(last, lift) for lift in lifts if lift and lift[0] == "Tensor"] + [(own, None) for own in overloads]
    for k, (own, lift) in enumerate(wanted):
        made = ast.parse(ast.unparse(own)).body[0]
        assert isinstance(made, ast.FunctionDef)
        first = [*made.args.posonlyargs, *made.args.args, made.args.vararg][0]
        assert first is not None
        if lift:
            first.annotation, made.returns = ast.Name(lift[0]), ast.Name(lift[1])
        for option in ("loc", "ip"):
            made.args.kwonlyargs.append(ast.arg(option, ast.Name("Any")))
            made.args.kw_defaults.append(ast.Constant(None))
        made.decorator_list = [ast.Name("overload")] if len(wanted) > 1 else []
        made.body = [ast.Expr(ast.Constant(doc))] if doc and k == 0 else []
        made.body.append(ast.Expr(ast.Constant(...)))
        yield made


def main() -> int:
    made = stubs()
    mark = HEAD.partition("{")[0]
    ours = {path for path in PACKAGE.rglob("*.pyi") if path.read_text(encoding="utf-8").startswith(mark)}
    stale = [p for p, text in made.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    left = sorted(ours - set(made))
    if "--check" in sys.argv[1:]:
        for path in [*stale, *left]:
            print(f"{path.relative_to(ROOT)} is not current: run `python tools/stubs.py` and commit what it writes")
        return bool(stale or left)
    for path in stale:
        path.write_text(made[path], encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in left:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
