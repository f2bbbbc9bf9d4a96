"""The common interface of named barriers, arrays of mbarriers and groups of bulk stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.location_keywords import takes_location


@takes_location
class SyncObject(ABC):
    """Something that threads arrive at and wait for. ``arrive`` and ``wait`` take the stage (and the parity of its
    phase) where there are several."""

    __slots__ = ()

    @abstractmethod
    def arrive(self, *args: Any, **kwargs: Any) -> None:
        """Signal, and go on."""

    @abstractmethod
    def wait(self, *args: Any, **kwargs: Any) -> None:
        """Wait until all have signalled."""

    @abstractmethod
    def arrive_and_wait(self, *args: Any, **kwargs: Any) -> None:
        """Signal, then wait."""

    def arrive_and_drop(self, *args: Any) -> None:
        """Refused (ConstraintError): the number of those who arrive is that of the first phase."""
        raise ConstraintError(
            f"{type(self).__name__}.arrive_and_drop: threads cannot leave a {type(self).__name__}; its phases all "
            "count the same arrivals. Let them arrive to the end, or make another one for those that stay"
        )

    @abstractmethod
    def get_barrier(self, *args: Any, **kwargs: Any) -> Any:
        """The pointer to the mbarrier, the number of the named barrier, or None for a pipeline without a barrier."""

    @abstractmethod
    def max(self) -> int | None:
        """The most arrivals (of an mbarrier) or barriers (of a block) that there are; None: no limit."""
