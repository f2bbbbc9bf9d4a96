"""The properties of the GPU: multiprocessors, L2 cache, how many clusters fit at once."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tilewright.errors import MachineError
from tilewright.ir.target import assumed_architecture
from tilewright.location_keywords import takes_location

# CUdevice_attribute
MULTIPROCESSOR_COUNT, L2_CACHE_SIZE, SHARED_MEMORY_PER_BLOCK_OPTIN = 16, 38, 97
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76
H100 = 132
MEASURED = {1: 132, 2: 66, 4: 30, 8: 15, 16: 7}
"""Clusters of one block a multiprocessor on an H100 or H200 (``cuOccupancyMaxActiveClusters``): the multiprocessors of
a cluster are in one GPC, and what is left over in each GPC stays idle."""


@takes_location
class HardwareInfo:
    """Properties of CUDA device ``device_id``.

    Without a GPU the figures of the usual GPU of ``CUTE_DSL_ARCH`` stand in (without it an H100 SXM: 132
    multiprocessors), so that schedules can be planned and simulated anywhere; ``is_present`` tells. The L2 cache is
    that of an H100, 50 MiB.
    """

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id
        self._driver = _driver()

    @property
    def is_present(self) -> bool:
        return self._driver is not None

    def get_device_multiprocessor_count(self) -> int:
        """How many multiprocessors."""
        return self._attribute(MULTIPROCESSOR_COUNT, assumed_architecture().multiprocessor.sms)

    get_max_active_blocks = get_device_multiprocessor_count

    def get_l2_cache_size_in_bytes(self) -> int:
        """Bytes of L2 cache."""
        return self._attribute(L2_CACHE_SIZE, 50 << 20)

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of ``cluster_size`` blocks, one block a multiprocessor, run at once."""
        return clusters_at_once(self.get_device_multiprocessor_count(), cluster_size)

    def get_compute_capability(self) -> tuple[int, int]:
        """(major, minor)."""
        return (
            self._attribute(COMPUTE_CAPABILITY_MAJOR, assumed_architecture().capability // 10),
            self._attribute(COMPUTE_CAPABILITY_MINOR, assumed_architecture().capability % 10),
        )

    def get_device_name(self) -> str:
        """The GPU's name; without a GPU that of the one whose figures stand in."""
        if self._driver is None:
            name = assumed_architecture().multiprocessor.device
            return "NVIDIA H100 80GB HBM3" if name == "H100 SXM" else f"NVIDIA {name}"
        return str(self._driver.device_name(self._driver.handle(self.device_id)))

    def get_shared_memory_per_block(self) -> int:
        """Bytes of shared memory that one block can ask for."""
        return self._attribute(SHARED_MEMORY_PER_BLOCK_OPTIN, assumed_architecture().smem)

    def get_driver_version(self) -> int:
        """The newest CUDA that the driver knows: 13000 for 13.0; 0 without a driver."""
        return 0 if self._driver is None else int(self._driver.driver_version())

    def _attribute(self, number: int, otherwise: int) -> int:
        if self._driver is None:
            return otherwise
        return int(self._driver.device_attribute(self._driver.handle(self.device_id), number))


def clusters_at_once(multiprocessors: int, size: int) -> int:
    """Clusters of ``size`` blocks, one block a multiprocessor; as measured on GPUs like an H100, else an upper bound.

    A persistent kernel with more clusters than this runs the rest of them as a second wave.

    >>> clusters_at_once(132, 2), clusters_at_once(132, 4)
    (66, 30)
    """
    if multiprocessors == H100 and size in MEASURED:
        return MEASURED[size]
    return max(1, multiprocessors // size)


def _driver() -> Any:
    """The driver's functions, initialised; None where there is no driver or no device, or the CPU serves in its place
    (``tilewright run --cpu``)."""
    served = sys.modules.get("cuda.bindings.driver")
    if served is not None and served.__name__.startswith("tilewright."):
        return None
    try:
        driver = import_module("tilewright.cuda.libcuda")  # by name, as nothing here knows the machines
        return driver if driver.device_count() else None
    except MachineError:
        return None
