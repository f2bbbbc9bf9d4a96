"""PyTorch's functions while the CPU serves its CUDA device: a function mode for the calls on tensors, and
stand-ins for the names of ``torch.cuda``."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tilewright.compat import memory, recording, torch_names
from tilewright.compat.torch_aligned import align, resize
from tilewright.compat.torch_autograd import autograd
from tilewright.lang.arguments.arrays import SERVED

_MARK = SERVED
_CUDA = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_GETTERS: dict[Any, Callable[[Any], Any]] = {
    torch.Tensor.device.__get__: lambda _: _CUDA,
    torch.Tensor.is_cuda.__get__: lambda _: True,
    torch.Tensor.is_cpu.__get__: lambda _: False,
    torch.Tensor.get_device: lambda _: 0,
}
_GRAD = torch.Tensor.grad.__get__
_SET_DATA = torch.Tensor.data.__set__
_OF_ATTRIBUTES = {_GRAD, _SET_DATA, torch.Tensor.__repr__, torch.Tensor.__format__}
_INHERITED = object()  # a name that its owner has from a base class
_NOT_THE_PROGRAM = ("torch", "tilewright", "numpy", "jax")


def is_cuda(device: Any) -> bool:
    """Whether ``device`` (a torch.device, a name, a number) is a CUDA device."""
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and device.partition(":")[0] == "cuda" or type(device) is int


def _marked(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and _MARK in x.__dict__


def _any_marked(values: Any) -> bool:
    return any(_any_marked(v) if isinstance(v, (tuple, list)) else _marked(v) for v in values)


def _mark(result: Any, name: str = "", given: Any = ()) -> Any:
    """``result``, of the function ``name`` with the arguments ``given``, lies on the GPU from now on."""
    if isinstance(result, (tuple, list)):
        for part in result:
            _mark(part, name, given)
    elif isinstance(result, torch.Tensor):
        recording.counts.tensors += _MARK not in result.__dict__
        setattr(result, _MARK, True)
        with torch._C.DisableTorchFunction():
            align(result, name, given)
    return result


def _unmarked(x: torch.Tensor) -> torch.Tensor:
    x.__dict__.pop(_MARK, None)
    return x


def _with_device(text: str) -> str:
    """What a tensor of the CPU prints, as one on the GPU does: ``tensor([1., 2.], device='cuda:0')``."""
    shown = re.compile(r"(?:, (?:size|dtype|layout|grad_fn|requires_grad)=[^\n]*)?\)$").search(text)
    return f"{text[: shown.start()]}, device='cuda:0'{text[shown.start() :]}" if shown else text


def _reach(x: torch.Tensor) -> None:
    storage = x.untyped_storage()
    address = storage.data_ptr()
    memory.reach(address, storage.nbytes())
    weakref.finalize(storage, memory.forget, address)


def _attribute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Attributes and texts of tensors: those of marked ones are as on the GPU."""
    x = args[0]
    if func in _GETTERS:
        return _GETTERS[func](x) if _marked(x) and _asked_by_the_program(3) else func(*args)
    if func == _GRAD:
        return _mark(func(*args)) if _marked(x) else func(*args)
    if func == _SET_DATA:
        func(*args)
        return _mark(x) if _marked(args[1]) else _unmarked(x)
    shown = func(*args, **kwargs)  # the text
    return _with_device(shown) if _marked(x) and shown.startswith("tensor(") else shown


class CudaOnCpu(TorchFunctionMode):
    """Turns "cuda" into "cpu" in the arguments of PyTorch's functions, and marks what would be on the GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **kwargs)
        if func in _OF_ATTRIBUTES or func in _GETTERS:
            return _attribute(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return self.move(args[0], True, args[2:3], kwargs)
        if name == "cpu":
            return self.move(args[0], False, (), kwargs)
        if name == "to":
            return self.to(*args, **kwargs)
        if name in ("pin_memory", "record_stream"):
            return args[0]
        if name == "__dlpack__":
            kwargs.pop("stream", None)
            return func(args[0], **kwargs)
        if name == "data_ptr" and _marked(args[0]) and _asked_by_the_program():
            _reach(args[0])  # kernels may find the address in memory
        return self.computed(func, name, args, kwargs)

    def computed(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Call ``func`` on the CPU. Its result is on the GPU where ``device`` is, by default where an operand is."""
        device = kwargs.get("device")
        to_cuda = is_cuda(device)
        if to_cuda:
            kwargs["device"] = _CPU
        kwargs.pop("pin_memory", None)
        on_cuda = to_cuda or device is None and _any_marked((*args, *kwargs.values()))
        args = tuple(_CPU if isinstance(a, torch.device) and a.type == "cuda" else a for a in args)
        if name in ("resize_", "resize_as_") and on_cuda:
            return resize(func, *args, **kwargs)
        result = self.act(func, args, kwargs)
        if not on_cuda or name in ("__set__", "data_ptr", "numpy"):
            return result
        return _mark(result, name, (*args, *kwargs.values()))

    def act(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call ``func``; while a graph is captured it will be called at each launch of the graph, for the same
        tensors."""
        graph = recording.counts.capture
        if graph is None or not _asked_by_the_program(4):
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name.endswith("_") and not name.endswith("__"):
            graph.steps.append(lambda: func(*args, **kwargs))
            return args[0]
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result._base is None:
            graph.steps.append(lambda: result.copy_(func(*args, **kwargs)))
        return result

    @staticmethod
    def move(x: torch.Tensor, to_cuda: bool, rest: Any, kwargs: dict[str, Any]) -> torch.Tensor:
        """``x.cuda()`` or ``x.cpu()``: a copy where a GPU would make one."""
        form = {k: v for k, v in kwargs.items() if k == "memory_format"}
        if _marked(x) == to_cuda:
            return x
        copy = x.to("cpu", copy=True, **form)
        return _mark(copy) if to_cuda else _unmarked(copy)

    def to(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """``x.to(device)``, ``x.to(dtype)``, ``x.to(device, dtype)``, ``x.to(other)``."""
        other = next((a for a in (*args, kwargs.get("other")) if isinstance(a, torch.Tensor)), None)
        devices = [a for a in args if isinstance(a, (str, torch.device)) or type(a) is int]
        device = devices[0] if devices else kwargs.get("device")
        if other is not None:
            to_cuda, device = _marked(other), _CPU
        else:
            to_cuda = _marked(x) if device is None else is_cuda(device)
        if device is not None and is_cuda(device):
            args = tuple(_CPU if a is device else a for a in args)
            if "device" in kwargs:
                kwargs["device"] = _CPU
        moved = x.to(*args, **kwargs)
        if moved is x and _marked(x) != to_cuda:
            moved = x.to("cpu", copy=True)
        if moved is x:
            return x
        return _mark(moved) if to_cuda else _unmarked(moved)


def _asked_by_the_program(up: int = 2) -> bool:
    """Whether the code that asks is the program's own: libraries are told what the tensor is."""
    frame: Any = sys._getframe(up)
    while frame.f_back and frame.f_globals.get("__name__") == "torch.utils._device":  # `with torch.device(...):`
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_PROGRAM


class Patch:
    """The device as PyTorch sees it, put in place; :meth:`undo` takes it away."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, str, Any]] = []
        for owner, names in torch_names.replacements(torch, is_cuda, CudaOnCpu).items():
            for name, value in names.items():
                self.before.append((owner, name, getattr(owner, name, None)))
                setattr(owner, name, value)
        for owner, names in autograd(CudaOnCpu, _any_marked, _mark).items():
            for name, value in names.items():
                self.before.append((owner, name, owner.__dict__.get(name, _INHERITED)))
                setattr(owner, name, value)
        self.mode = CudaOnCpu()
        self.mode.__enter__()

    def undo(self) -> None:
        self.mode.__exit__(None, None, None)
        for owner, name, value in reversed(self.before):
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
