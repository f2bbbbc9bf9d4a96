"""Calls of PyTorch tensors that repeat an earlier one of the same geometry: only its launches are made again.

What an operator launches depends on the geometry of its tensors and on its options alone, and this is the key. The
first call of a key is recorded (``torch_recording``): its launches, which addresses among their arguments are those of
the tensors, the memory that it took for the result and in between. A call that did anything else with memory, as a copy
of an operand by PyTorch, is not kept. ``matmul`` and what is made of it have launches that are kept in another
way (:class:`~tilewright.gemm.operators.repeated.RepeatedProduct`), as these also change their number of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.gemm.host.plan import simulated_gpu
from tilewright.gemm.host.recorded import current
from tilewright.gemm.operators.open_extents import Modes, OpenCall, closed, key_without, last_offset, opened
from tilewright.gemm.operators.recorded_call import RepeatedCall
from tilewright.gemm.operators.repeated import torch_key
from tilewright.gemm.tuning import store

REMEMBERED = 4096
"""Calls that are kept; more than that are forgotten together."""
CALLS: dict[Any, RepeatedCall] = {}
"""The launches of calls, by geometry, options and operator."""
OPEN: dict[Any, OpenCall] = {}
"""The same without extents that are open."""


def span(x: Any) -> tuple[int, int]:
    """Where a tensor's elements begin and end, seen from its address."""
    return 0, (last_offset(x) + 1) * x.element_size() if x.numel() else 0


def is_torch(a: Any) -> bool:
    """Whether a call with ``a`` is one of PyTorch tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(a, torch.Tensor)


def repeated_call(
    operator: str,
    tensors: Sequence[Any],
    out: Any,
    options: Any,
    run: Callable[[], Any],
    open_modes: Callable[[Sequence[Any]], Sequence[Modes]] = closed,
) -> Any:
    """What ``run()`` gives: the result of an ``operator`` for PyTorch tensors (None: not given) and ``options``, which
    is ``out`` if that is given. Where such a call was made before, its launches are made again; ``open_modes`` names
    the modes whose extents may then be others (:mod:`~tilewright.gemm.operators.open_extents`)."""
    if current() is not None:  # a part of a call that is recorded
        return run()
    try:
        key = torch_key(*tensors), options, simulated_gpu() if tensors[0].is_cpu else None, operator
        call = CALLS.get(key)
    except (RuntimeError, TypeError, AttributeError):  # no strides, no hash: whatever it is, it is an error
        return run()
    passed = [x for x in tensors if x is not None]
    others: OpenCall | None = None
    if call is None and (opening := opened(tensors, open_modes(tensors))) is not None:
        others = OPEN.setdefault((key_without(tensors, opening), *key[1:]), OpenCall())
        call = others.call(opening.extents, tuple([span(x) for x in passed]))
        if call is not None:
            keep(key, call)
    if call is not None:
        result = call.launch(passed, out)
        if result is not None:
            return result
    from tilewright.gemm.operators.torch_recording import recorded

    result, made = recorded(run, passed, out)
    if made is not None:
        keep(key, made)
        if others is not None and opening is not None:
            others.learn(made, opening.extents)
    return result


def keep(key: Any, call: RepeatedCall) -> None:
    """Keep a call for its repetition."""
    if len(CALLS) >= REMEMBERED:
        forget()
    CALLS[key] = call


def forget() -> None:
    """Keep no call: the next one of each geometry is planned at length."""
    CALLS.clear()
    OPEN.clear()


store.when_kept(forget)
