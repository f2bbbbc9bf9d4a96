"""The table of operations: for each opcode its operands, attributes and the rule that the verifier applies.

Values. Constants are :class:`~tilewright.ir.core.Constant` operands, never ops.

Elementwise (scalars or vectors of one type, result of the same type or i1): the rows of
  :data:`tilewright.ir.arithmetic.TABLE`. ``div`` on integers truncates and ``rem`` has the sign of the dividend (C),
  ``floordiv``/``floormod`` round down (Python). Attribute ``wraps``: nothing proves that the result of a signed
  ``add sub mul neg`` fits or that a shift is by less than the width (they wrap, or shift everything out); ``fastmath``:
  functions of f32 may be approximate. Beside the table: ``select(cond, a, b)``;
  ``cast`` converts the number to the result's element type (floats to integers truncate; round to nearest even);
  ``bitcast`` keeps the bits (same total width).
Vectors: ``vec.build(e0, e1, ...)``; ``vec.splat(e)``; ``vec.extract(v) {index}``; ``vec.shuffle(v) {indices}`` (result
  element i is ``v[indices[i]]``); ``vec.concat(a, b)``; ``vec.reduce(v[, init]) {kind: add|mul|max|min, groups}``:
  element g of the result folds ``v[i] for i in groups[g]`` from left to right, starting from ``init``; one group gives
  a scalar.
Pointers: ``ptr.add(p, i)`` in elements; ``ptr.cast(p)`` to the result's pointer type; ``ptr.toint(p)``;
  ``ptr.fromint(i)``.
Memory: ``load(p)`` gives an element or ``vec<n>`` of contiguous elements; ``store(p, v)``. Both act as one access if
  the pointer's alignment allows it, else as several.
Fragments: ``frag.alloc`` (fresh registers, undefined); ``frag.load(f[, i]) {offsets}`` gives element(s)
  ``f[i + offsets[k]]`` (a scalar for one offset when ``scalar`` is set); ``frag.store(f, v[, i]) {offsets}``.
Shared memory: ``smem.alloc {offset, bytes, align}`` points to a static place in the block's dynamic shared memory.
Special registers: ``sreg {name}`` with tid.x, ntid.x, ctaid.x, nctaid.x (x y z), laneid, warpid, and the cluster ones.
Control: ``for(lo, hi, step, *init) {unroll: None|int|"full"}`` region(iv, *carried) ends in ``yield``;
  ``if(cond)`` regions then, else end in ``yield``; ``while(*init)`` region before(*carried) ends in
  ``condition(c, *carried)`` and region after(*carried) ends in ``yield``.
Instructions: ``call(*operands) {atom: Instruction, ...}``.
Diagnostics: ``printf(*args) {format}``; ``assert(cond) {message}``.
Host only: ``launch(grid3, block3, cluster3, smem, stream?, *args) {kernel: Function, has_stream[, ...]}``
  (:class:`~tilewright.ir.launch.LaunchOperands`);
  ``tensormap(pointer, *extents and strides) {template}`` gives a tensor map (:mod:`tilewright.ir.tensormap`), then i32
  scales.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import VerifyError
from tilewright.ir.arithmetic import TABLE
from tilewright.ir.core import Constant, Function, Op
from tilewright.ir.launch import LaunchOperands
from tilewright.ir.types import BOOL, FragType, MemSpace, PtrType, ScalarType, Type, VecType, element_of, with_element

ELEMENTWISE = frozenset(TABLE)
COMPARISONS = frozenset("eq ne lt le gt ge".split())
TERMINATORS = frozenset(("yield", "condition"))
SREGS = frozenset(
    [
        f"{base}.{axis}"
        for base in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
        for axis in "xyz"
    ]
    + ["laneid", "warpid", "cluster_ctarank", "cluster_nctarank", "smid", "clock", "dynamic_smem_size"]
)
OF_LAUNCHES = frozenset(("nsmid", "nwarpid", "gridid", "total_smem_size", "aggr_smem_size"))
"""Special registers that inline PTX alone reads, one value in a launch."""
REDUCTIONS = frozenset(("add", "mul", "max", "min"))
PURE = ELEMENTWISE | frozenset(
    "select cast bitcast vec.build vec.splat vec.extract vec.shuffle vec.concat vec.reduce ptr.add ptr.cast ptr.toint "
    "ptr.fromint smem.alloc".split()
)
UNREAD_IS_DEAD = PURE | {"sreg", "load", "frag.load", "frag.alloc", "tensormap"}
"""Ops that may be dropped where their results are never read."""

Rule = Callable[[Op], None]
RULES: dict[str, Rule] = {}


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the verifier's rule of some opcodes."""

    def register(check: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = check
        return check

    return register


def need(op: Op, condition: bool, text: str) -> None:
    if not condition:
        types = ", ".join(str(v.type) for v in op.operands)
        raise VerifyError(
            f"{op.opcode}({types}) -> {[v.type for v in op.results]}: {text}{f' at {op.loc}' if op.loc else ''}"
        )


def is_number(type_: Type) -> bool:
    return isinstance(type_, (ScalarType, VecType))


MANY = 1 << 30
FORMS: dict[str, tuple[tuple[int, int], tuple[int, int], int, frozenset[str]]] = {}
"""For each opcode: how many operands (least, most), how many results, how many regions, and its needed attributes."""


def _form(opcodes: str, operands: tuple[int, int], results: tuple[int, int], attrs: str = "", regions: int = 0) -> None:
    for opcode in opcodes.split():
        FORMS[opcode] = (operands, results, regions, frozenset(attrs.split()))


for _row in TABLE.values():
    _form(_row.name, (_row.operands, _row.operands), (1, 1))
_form("select", (3, 3), (1, 1))
_form("cast bitcast vec.splat ptr.cast ptr.toint ptr.fromint load", (1, 1), (1, 1))
_form("vec.build vec.concat", (1, MANY), (1, 1))
_form("vec.extract", (1, 1), (1, 1), "index")
_form("vec.shuffle", (1, 1), (1, 1), "indices")
_form("vec.reduce", (1, 2), (1, 1), "kind groups")
_form("ptr.add", (2, 2), (1, 1))
_form("store", (2, 2), (0, 0))
_form("frag.alloc", (0, 0), (1, 1))
_form("frag.load", (1, 2), (1, 1), "offsets")
_form("frag.store", (2, 3), (0, 0), "offsets")
_form("smem.alloc", (0, 0), (1, 1), "offset bytes align")
_form("sreg", (0, 0), (1, 1), "name")
_form("for", (3, MANY), (0, MANY), regions=1)
_form("if", (1, 1), (0, MANY), regions=2)
_form("while", (0, MANY), (0, MANY), regions=2)
_form("yield", (0, MANY), (0, 0))
_form("condition", (1, MANY), (0, 0))
_form("call", (0, MANY), (0, MANY), "atom")
_form("printf", (0, MANY), (0, 0), "format")
_form("assert", (1, 1), (0, 0), "message")
_form("tensormap", (1, MANY), (1, MANY), "template")
_form("launch", (10, MANY), (0, 0), "kernel")


def check_form(op: Op) -> None:
    """The rule of every op: the rules of single opcodes rely on it."""
    operands, results, regions, attrs = FORMS[op.opcode]
    operand_count, result_count, region_count = len(op.operands), len(op.results), len(op.regions)
    wrong = ""  # this runs for every op: messages are made for wrong ones only
    if not operands[0] <= operand_count <= operands[1]:
        wrong = f"{operand_count} operands given"
    elif not results[0] <= result_count <= results[1]:
        wrong = f"{result_count} results given"
    elif region_count != regions:
        wrong = f"has {region_count} regions, not {regions}"
    elif not attrs <= op.attrs.keys():
        wrong = f"needs the attributes {', '.join(sorted(attrs))}"
    need(op, not wrong, wrong)


@rule(*ELEMENTWISE)
def _elementwise(op: Op) -> None:
    row, kind = TABLE[op.opcode], op.operands[0].type
    need(op, all(v.type == kind for v in op.operands), "operands must have one type")
    if op.opcode in COMPARISONS and isinstance(kind, PtrType):
        return
    need(op, is_number(kind), "needs numbers")
    need(op, row.on(element_of(kind)) is not None, f"is not defined on {element_of(kind)}")
    result = with_element(kind, BOOL) if row.predicate else kind
    need(op, op.result.type == result, f"gives {result}")


@rule("select")
def _select(op: Op) -> None:
    cond, a, b = op.operands
    need(op, cond.type in (BOOL, with_element(a.type, BOOL)), "the condition is i1, or as many of them as elements")
    need(op, a.type == b.type == op.result.type, "both sides and the result must have one type")


@rule("cast")
def _cast(op: Op) -> None:
    src, dst = op.operands[0].type, op.result.type
    need(op, is_number(src) and with_element(src, element_of(dst)) == dst, "keeps the number of elements")


@rule("bitcast")
def _bitcast(op: Op) -> None:
    src, dst = op.operands[0].type, op.result.type
    bits = [element_of(t).width * (t.n if isinstance(t, VecType) else 1) for t in (src, dst)]
    need(op, is_number(src) and is_number(dst) and bits[0] == bits[1], "keeps the total width")


@rule("vec.build", "vec.splat", "vec.concat")
def _vec_build(op: Op) -> None:
    kind = op.result.type
    need(op, isinstance(kind, VecType), "gives a vector")
    assert isinstance(kind, VecType)
    need(op, all(element_of(v.type) == kind.elem for v in op.operands), "elements must have the vector's type")
    if op.opcode != "vec.splat":
        count = sum(v.type.n if isinstance(v.type, VecType) else 1 for v in op.operands)
        need(op, count == kind.n, f"{count} elements given for {kind.n}")


@rule("vec.extract", "vec.shuffle")
def _vec_pick(op: Op) -> None:
    src = op.operands[0].type
    need(op, isinstance(src, VecType), "needs a vector")
    assert isinstance(src, VecType)
    picks = [op.attrs["index"]] if op.opcode == "vec.extract" else list(op.attrs["indices"])
    need(op, all(0 <= i < src.n for i in picks), f"an index of {picks} is outside {src.n} elements")
    want: Type = src.elem if op.opcode == "vec.extract" else VecType(src.elem, len(picks))
    need(op, op.result.type == want, f"gives {want}")


@rule("vec.reduce")
def _vec_reduce(op: Op) -> None:
    src = op.operands[0].type
    need(op, isinstance(src, VecType) and op.attrs["kind"] in REDUCTIONS, "needs a vector and a known kind")
    groups = op.attrs["groups"]
    assert isinstance(src, VecType)
    need(op, bool(groups) and all(groups), "needs elements in every group")
    need(op, all(v.type == src.elem for v in op.operands[1:]), "starts from an element")
    need(op, all(0 <= i < src.n for group in groups for i in group), "a group reaches outside the vector")
    want: Type = src.elem if len(groups) == 1 else VecType(src.elem, len(groups))
    need(op, op.result.type == want, f"gives {want}")


@rule("ptr.add")
def _ptr_add(op: Op) -> None:
    pointer, index = op.operands
    need(op, isinstance(pointer.type, PtrType) and isinstance(index.type, ScalarType), "needs a pointer and an index")
    need(op, element_of(index.type).is_integer, "the index is an integer")
    result = op.result.type
    assert isinstance(pointer.type, PtrType)
    need(
        op,
        isinstance(result, PtrType) and (result.elem, result.space) == (pointer.type.elem, pointer.type.space),
        "gives a pointer of the same kind",
    )


@rule("ptr.cast")
def _ptr_cast(op: Op) -> None:
    need(op, all(isinstance(v.type, PtrType) for v in (op.operands[0], op.result)), "takes and gives a pointer")


@rule("ptr.toint", "ptr.fromint")
def _ptr_int(op: Op) -> None:
    pointer, number = op.operands[0].type, op.result.type
    if op.opcode == "ptr.fromint":
        pointer, number = number, pointer
    need(
        op,
        isinstance(pointer, PtrType) and isinstance(number, ScalarType) and number.is_integer,
        "needs pointer and integer",
    )


@rule("load", "store")
def _access(op: Op) -> None:
    pointer = op.operands[0].type
    value = op.result.type if op.opcode == "load" else op.operands[1].type
    need(op, isinstance(pointer, PtrType), "needs a pointer")
    need(
        op,
        is_number(value) and element_of(value) == element_of(pointer),
        "value and pointer must agree in element type",
    )


@rule("frag.alloc")
def _frag_alloc(op: Op) -> None:
    kind = op.result.type
    need(op, isinstance(kind, FragType) and kind.n > 0, "gives a fragment of one register or more")


@rule("frag.load", "frag.store")
def _frag_access(op: Op) -> None:
    frag = op.operands[0].type
    need(op, isinstance(frag, FragType), "needs a fragment")
    assert isinstance(frag, FragType)
    load = op.opcode == "frag.load"
    value = op.result.type if load else op.operands[1].type
    offsets, index = op.attrs["offsets"], op.operands[1:] if load else op.operands[2:]
    count = value.n if isinstance(value, VecType) else 1
    need(op, element_of(value) == frag.elem and len(offsets) == count, "value, offsets and fragment must agree")
    if index:
        need(op, isinstance(index[0].type, ScalarType) and index[0].type.is_integer, "the index is an integer")
    else:
        inside = all(0 <= o < frag.n for o in offsets)
        need(op, inside, f"an offset of {tuple(offsets)} is outside {frag.n} registers")


@rule("smem.alloc")
def _smem_alloc(op: Op) -> None:
    kind, offset, align = op.result.type, op.attrs["offset"], op.attrs["align"]
    need(op, isinstance(kind, PtrType) and kind.space == MemSpace.SMEM, "gives a pointer to shared memory")
    need(op, offset >= 0 and op.attrs["bytes"] >= 0 and align > 0, "offset, bytes and align are sizes")
    need(op, offset % align == 0, "the offset must be a multiple of the alignment")


@rule("sreg")
def _sreg(op: Op) -> None:
    need(op, op.attrs["name"] in SREGS, f"unknown special register {op.attrs['name']!r}")
    kind = op.result.type
    need(op, isinstance(kind, ScalarType) and kind.is_integer, "gives an integer")


@rule("for")
def _for(op: Op) -> None:
    lo, hi, step, *init = op.operands
    body = op.regions[0]
    need(op, bool(body.args), "a region with an index is needed")
    need(op, lo.type == hi.type == step.type == body.args[0].type, "bounds, step and index must have one type")
    need(op, isinstance(lo.type, ScalarType) and lo.type.is_integer, "counts in integers")
    need(op, not (isinstance(step, Constant) and step.value == 0), "a step of 0 never ends")
    unroll = op.attrs.get("unroll")
    need(op, unroll in (None, "full") or (isinstance(unroll, int) and unroll > 0), f"cannot unroll {unroll!r} times")
    _carried(op, [v.type for v in init], [v.type for v in body.args[1:]], _terminator(op, body, "yield"))


@rule("if")
def _if(op: Op) -> None:
    need(op, op.operands[0].type == BOOL, "the condition is i1")
    for region in op.regions:
        need(op, not region.args, "its regions take nothing")
        _carried(op, [v.type for v in op.results], [v.type for v in op.results], _terminator(op, region, "yield"))


@rule("while")
def _while(op: Op) -> None:
    before, after = op.regions
    types = [v.type for v in op.operands]
    condition = _terminator(op, before, "condition")
    need(op, condition[:1] == [BOOL], "the condition is i1")
    _carried(op, types, [v.type for v in before.args], condition[1:])
    _carried(op, types, [v.type for v in after.args], _terminator(op, after, "yield"))


def _terminator(op: Op, region: object, opcode: str) -> list[Type]:
    ops = getattr(region, "ops", [])
    need(op, bool(ops) and ops[-1].opcode == opcode, f"a region must end in {opcode}")
    return [v.type for v in ops[-1].operands]


def _carried(op: Op, initial: list[Type], args: list[Type], yielded: list[Type]) -> None:
    results = [v.type for v in op.results]
    need(
        op,
        initial == args == yielded == results,
        f"carried types differ: {initial} in, {args} inside, {yielded} out, {results} after",
    )


@rule("yield", "condition", "printf")
def _free(op: Op) -> None:
    """Takes any values; the enclosing op checks them."""


@rule("assert")
def _assert(op: Op) -> None:
    need(op, op.operands[0].type == BOOL, "the condition is i1")


@rule("launch")
def _launch(op: Op) -> None:
    kernel = op.attrs["kernel"]
    need(op, isinstance(kernel, Function) and kernel.kind == "kernel", "needs a kernel")
    launch = LaunchOperands.of(op)
    need(op, all(isinstance(v.type, ScalarType) and v.type.is_integer for v in launch.sizes), "sizes are integers")
    passed = len(launch.arguments)
    need(
        op,
        passed == len(kernel.params),
        f"{passed} arguments for the {len(kernel.params)} parameters of {kernel.name}",
    )


@rule("tensormap")
def _tensormap(op: Op) -> None:
    need(op, isinstance(op.operands[0].type, PtrType), "takes a pointer, then integers")
    need(op, all(is_number(v.type) for v in op.operands[1:]), "extents and strides are integers")


@rule("call")
def _call(op: Op) -> None:
    atom = op.attrs["atom"]
    need(op, hasattr(atom, "simulate") and hasattr(atom, "emit"), "needs an instruction in its attribute 'atom'")
    atom.verify(op)
