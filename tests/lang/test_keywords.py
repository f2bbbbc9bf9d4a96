"""Keyword arguments of the public face: ``loc`` and ``ip`` are accepted and ignored, nothing else is."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import cute
from tilewright.errors import ConstraintError, KeywordError, StagingError

MODULES = (
    "cute",
    "cute.arch",
    "cute.math",
    "cute.nvgpu",
    "cute.nvgpu.common",
    "cute.nvgpu.warp",
    "cute.nvgpu.cpasync",
    "cute.nvgpu.warpgroup",
    "pipeline",
    "utils",
    "utils.hopper_helpers",
)
# Decorators, and functions of Python tuples: documented without loc and ip.
PLAIN = frozenset(
    "jit kernel is_static flatten_to_tuple unflatten repeat repeat_as_tuple repeat_like transform_leaf transform_apply "
    "tuple_cat basis_value basis_get get_swizzle_portion get_nonswizzle_portion has_underscore has_scaled_basis "
    "is_weakly_congruent E min max get_smem_capacity_in_bytes create_cute_tensor_for_fp8 is_fp8_dtype "
    "sym_int sym_int32 sym_int64 from_dlpack union native_struct".split()
)
# These hand keywords on, and refuse themselves what they do not know.
PASS_ON = ("acquire", "acquire_and_advance", "block_copy", "copy", "copy_atom_call", "jit", "kernel", "map")
METHODS = {
    "cute.Tensor": "load store fill",
    "cute.TensorSSA": "to reshape bitcast broadcast_to reduce ir_value",
    "cute.Pointer": "align toint load store",
    "cute.ThrCopy": "partition_S partition_D",
    "cute.TiledCopy": "get_slice retile",
    "cute.ThrMma": "partition_A partition_B partition_C",
    "cute.TiledMma": "get_slice make_fragment_A make_fragment_B make_fragment_C partition_shape_C",
    "pipeline.PipelineState": "advance reset_count clone",
    "pipeline.PipelineAsync": "create producer_acquire producer_commit producer_tail consumer_wait consumer_release",
    "pipeline.NamedBarrier": "arrive arrive_and_wait",
    "utils.SmemAllocator": "allocate allocate_array allocate_tensor",
}


def public(classes: bool) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of ours, with the name to show; with ``classes`` also the methods of public classes."""
    seen: set[int] = set()
    for name in MODULES:
        module = importlib.import_module(f"tilewright.{name}")
        for bare in getattr(module, "__all__", dir(module)):
            found = getattr(module, bare)
            ours = getattr(found, "__module__", "").startswith("tilewright.")
            if bare.startswith("_") or id(found) in seen or not ours:
                continue
            seen.add(id(found))
            if inspect.isfunction(found):
                yield f"{name}.{bare}", found
            elif classes and inspect.isclass(found):
                for method, made in vars(found).items():
                    function = made.__func__ if isinstance(made, (staticmethod, classmethod)) else made
                    if inspect.isfunction(function) and (method == "__init__" or not method.startswith("_")):
                        yield f"{name}.{bare}.{method}", function


FACE, FUNCTIONS = dict(public(True)), dict(public(False))


def test_no_function_swallows_keywords() -> None:
    assert len(FACE) > 700
    swallowing = [
        name
        for name, function in FACE.items()
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
        and not getattr(function, "__isabstractmethod__", False)
        and name.rpartition(".")[2] not in PASS_ON
        and ".atoms." not in function.__module__
    ]
    assert not swallowing


def test_no_source_drops_keywords() -> None:
    """``**_`` would swallow a misspelt option, and so would ``**kwargs`` that the body never names; objects that stand
    for a value that must not be used are apart."""
    package = Path(tilewright.__file__).parent
    dropping, unused = set(), set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.args.kwarg is None:
                continue
            name, place = node.args.kwarg.arg, f"{path.relative_to(package)}:{node.name}"
            if not name.strip("_"):
                dropping.add(place)
            elif not _only_says(node) and not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)):
                unused.add(place)
    refusing = {"lang/staging/text.py:_fixed", "explorer/stand_in.py:__call__"}
    assert dropping == refusing and not unused


def _only_says(function: ast.FunctionDef) -> bool:
    """Whether there is no body but an error: an overload, an abstract method, a call that is refused."""
    return all(
        isinstance(x, ast.Raise) or isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant) for x in function.body
    )


def test_every_public_function_takes_loc_and_ip() -> None:
    assert len(FUNCTIONS) > 180
    lacking = [
        name
        for name, function in FUNCTIONS.items()
        if name.rpartition(".")[2] not in PLAIN
        and function.__module__.split(".")[1] in ("lang", "tiled", "pipeline", "utils")
        and not {"loc", "ip"} <= inspect.signature(function).parameters.keys()
    ]
    assert not lacking


@pytest.mark.parametrize(("owner", "methods"), METHODS.items())
def test_documented_methods_take_loc_and_ip(owner: str, methods: str) -> None:
    module, _, name = owner.rpartition(".")
    kind = getattr(importlib.import_module(f"tilewright.{module}"), name)
    for method in methods.split():
        assert {"loc", "ip"} <= inspect.signature(getattr(kind, method)).parameters.keys(), f"{owner}.{method}"


def test_loc_and_ip_change_nothing() -> None:
    made = cute.make_layout((4, 2), stride=(2, 1), loc=None, ip=object())
    assert made == cute.make_layout((4, 2), stride=(2, 1))
    assert cute.size(made, mode=[0], loc=1, ip=1) == 4
    assert cute.crd2idx((1, 1), made, loc=1) == 3
    assert cute.composition(made, cute.make_layout(2, loc=1), ip=1) == cute.composition(made, cute.make_layout(2))
    assert cute.product((2, 3), loc=1) == 6


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(KeywordError, match=r"make_layout\(\) has no keyword argument 'strid'; did you mean 'stride'"):
        cute.make_layout((4, 2), strid=(2, 1))
    with pytest.raises(KeywordError, match=r"zipped_divide\(\) has no keyword argument 'tyler'; did you mean 'tiler'"):
        cute.zipped_divide(cute.make_layout(8), tyler=4)
    with pytest.raises(KeywordError, match=r"jit\(\) has no keyword argument 'preprocesor'; did you mean 'preproc"):
        cute.jit(preprocesor=False)
    with pytest.raises(TypeError, match=r"kernel\(\) has no keyword argument 'name'; it has preprocessor"):
        cute.kernel(name="k")


def staged(body: Callable[[Any], None]) -> None:
    """Stage a kernel that calls ``body`` with its tensor."""

    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        body(x)

    @cute.jit
    def launch(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    launch(np.zeros(32, np.float32))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: cute.arch.atomic_add(x.iterator, 1.0, scop="sys"), "atomic_add.*'scop'; did you mean 'scope'"),
        (lambda x: cute.arch.barrier(barrier=1), "barrier.*'barrier'; did you mean 'barrier_id'"),
        (lambda x: x.load(mask=1), r"Tensor.load\(\).*'mask'"),
        (lambda x: cute.printf("{}", 1, ending=""), "printf.*'ending'; did you mean 'end'"),
        (lambda x: cute.exp(x[0], fast_math=True), "'fast_math'; did you mean 'fastmath'"),
    ],
    ids=["atomic", "barrier", "load", "printf", "math"],
)
def test_an_unknown_keyword_in_a_kernel_names_the_line(body: Any, words: str) -> None:
    with pytest.raises(StagingError, match=f"(?s){words}.*test_keywords.py:"):
        staged(body)


def test_copy_refuses_keywords_that_its_instruction_does_not_take() -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    with pytest.raises(KeywordError, match="cute.copy.*'prd'; did you mean 'pred'"):
        staged(lambda x: cute.copy(atom, x, x, prd=None))
    with pytest.raises(ConstraintError, match="takes no tma_bar_ptr"):
        staged(lambda x: cute.copy(atom, x, x, tma_bar_ptr=x.iterator))
