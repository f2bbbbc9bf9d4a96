"""Keyword arguments and members that published programs use: there, and read by what takes them."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.test_names import DATA, find
from tilewright.stand_ins import NotHereYet

USED: dict[str, Any] = json.loads((DATA / "api_keywords.json").read_text(encoding="utf-8"))
KEYWORDS: dict[str, list[str]] = USED["keywords"]
IGNORED = ("loc", "ip")  # accepted everywhere, and without a meaning here
PASSED_ON = {("cutlass.cute.compile", "copy_bits")}  # an argument of the function that is compiled
NEEDLESS = {
    ("cutlass.cute.runtime.from_dlpack", "enable_tvm_ffi"),  # such tensors are taken with and without
    ("cutlass.torch.convert_cute_tensor", "is_dynamic_layout"),  # the tensor is changed in place, its layout stays
    ("cutlass.utils.hopper_helpers.sm90_get_smem_store_op", "elem_ty_acc"),  # accumulators of all types lie alike
}
# Of strings, lists, torch.Tensor and the allocator of tensor memory, which is a stand-in.
OF_OTHERS = set(
    "index count strip split lower startswith transpose numel data_ptr wait_for_alloc retrieve_ptr "
    "relinquish_alloc_permit free".split()
)
MODULES = (
    "cute",
    "cute.nvgpu",
    "cute.nvgpu.cpasync",
    "cute.nvgpu.warp",
    "cute.nvgpu.warpgroup",
    "pipeline",
    "utils",
    "cute.runtime",
    "lang.tensors.struct",
    "lang.arguments.dlpack",
    "tiled.tma.atom",
    "lang.launch.kernel",
)


def definition(found: Any) -> Any:
    """The function that takes the keywords: of a class its constructor, unless a dataclass's fields are them."""
    found = inspect.unwrap(found)
    if not (inspect.isclass(found) or inspect.isroutine(found)):  # an object that is called: cute.compile
        return type(found).__call__
    if inspect.isclass(found):
        return found if hasattr(found, "__dataclass_fields__") else found.__init__
    return found


def hands_on(function: Any, keyword: str) -> bool:
    """Whether it takes any arguments and hands them on to the function whose signature it shows."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return keyword not in own and bool(code.co_flags & inspect.CO_VARKEYWORDS)


def names_read(found: Any) -> set[str]:
    """The names that the body of a function reads (of a class: anything in it)."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    body = tree.body[0]
    parts = body.body if isinstance(body, (ast.FunctionDef, ast.ClassDef)) else [body]
    nodes = [node for part in parts for node in ast.walk(part)]
    loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return (
        loaded
        | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        | {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    )


@pytest.mark.parametrize("name", KEYWORDS)
def test_every_keyword_is_a_parameter_that_is_read(name: str) -> None:
    if name.startswith("cutlass.torch"):
        pytest.importorskip("torch")
    found = find(name)
    if isinstance(found, NotHereYet):  # refused as a whole
        return
    parameters = inspect.signature(found).parameters
    function = definition(found)
    for keyword in KEYWORDS[name]:
        if (name, keyword) in PASSED_ON:
            assert any(p.kind is p.VAR_KEYWORD for p in parameters.values())
            continue
        assert keyword in parameters, f"{name}({keyword}=)"
        if keyword not in IGNORED and (name, keyword) not in NEEDLESS and not hands_on(function, keyword):
            assert keyword in names_read(function), f"{name}({keyword}=) is accepted and not used"


def test_a_keyword_that_is_not_read_would_be_found() -> None:
    def function(a: int, b: int = 0) -> int:
        return a

    assert "a" in names_read(function) and "b" not in names_read(function)


def assigned(function: Any) -> set[str]:
    """The attributes that a constructor sets."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):  # made by @dataclass
        return set()
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def members() -> Iterator[str]:
    """The attributes of every public class, and of those behind what programs hold without naming it."""
    for name in MODULES:
        module = importlib.import_module(f"tilewright.{name}")
        for bare in dir(module):
            found = getattr(module, bare)
            if inspect.isclass(found):
                yield from dir(found)
                yield from dir(type(found))
                yield from getattr(found, "__slots__", ())
                yield from getattr(found, "__dataclass_fields__", ())
                if inspect.isfunction(found.__init__):
                    yield from assigned(found.__init__)


def test_every_member_is_that_of_a_public_class() -> None:
    gone = set(USED["members"]) - set(members()) - OF_OTHERS
    assert not gone
