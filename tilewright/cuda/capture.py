"""Whether a kernel that may overlap with the one before it is launched so: everywhere but behind some nodes of graphs.

In a stream, a launch with programmatic serialization begins sooner behind every kernel. In a CUDA graph it gains where
the kernel before lets the next one begin (``griddepcontrol.launch_dependents``), and costs 0.2 to 0.5 us more than a
plain edge where that kernel does not, which is so for most kernels of other libraries. A capture knows the nodes that
the next launch will depend on, and so the kernel before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from tilewright.cuda import libcuda
from tilewright.cuda.libcuda import LaunchConfiguration

NOT_CAPTURING = 0
KERNEL_NODE = 0

_triggering: set[int] = set()
"""Handles of the loaded kernels that let the next one begin."""


class _KernelNode(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS``."""

    _fields_ = [
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem", c_uint),
        ("parameters", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    ]


def remember_triggering(function: int) -> None:
    """``function`` is the handle of a kernel that executes ``griddepcontrol.launch_dependents``."""
    _triggering.add(function)


def leave_to_overlap(config: LaunchConfiguration) -> Any:
    """The words of a configuration whose first says whether the launch may begin before the one before it has ended;
    None where it never may."""
    attributes = (x for x in config.attributes[: config.count] if x.id == libcuda.PROGRAMMATIC_STREAM_SERIALIZATION)
    return next((attribute.value for attribute in attributes), None)


def submit(go: Callable[[], int], config: LaunchConfiguration, leave: Any) -> int:
    """Launch by ``go``, with or without leave to overlap; gives the driver's code. ``leave``:
    :func:`leave_to_overlap`."""
    stream = config.stream
    leave[0] = may_overlap(stream) if stream else 1
    return go()


def may_overlap(stream: int | None) -> bool:
    """Whether the next launch on ``stream`` gains by programmatic serialization."""
    if not stream:  # the default stream, which cannot be captured
        return True
    driver, status = libcuda.library(), c_int()
    if driver.cuStreamIsCapturing(c_void_p(stream), byref(status)) or status.value == NOT_CAPTURING:
        return True
    nodes = _before(driver, stream)
    return bool(nodes) and all(_triggers(driver, node) for node in nodes)


def _before(driver: ctypes.CDLL, stream: int) -> list[int | None]:
    """The nodes of the graph that the next one of ``stream`` will depend on."""
    status, number, graph = c_int(), c_uint64(), c_void_p()
    nodes, edges, count = POINTER(c_void_p)(), c_void_p(), c_size_t()
    outputs = (status, number, graph, nodes, edges, count)
    # Not version 2, which refuses where an edge is a programmatic one.
    code = driver.cuStreamGetCaptureInfo_v3(c_void_p(stream), *map(byref, outputs))
    return [] if code else nodes[: count.value]


def _triggers(driver: ctypes.CDLL, node: int | None) -> bool:
    """Whether a node is one of our kernels that let the next one begin."""
    kind, kernel = c_int(), _KernelNode()
    if driver.cuGraphNodeGetType(c_void_p(node), byref(kind)) or kind.value != KERNEL_NODE:
        return False
    return not driver.cuGraphKernelNodeGetParams_v2(c_void_p(node), byref(kernel)) and kernel.function in _triggering
