"""The internal signal of a fault in the simulated program; the engine turns it into a SimulationError with place and
thread."""

from __future__ import annotations

from typing import Any

import numpy as np


class Fault(Exception):
    """``text`` says what is wrong. ``lanes`` (bool ``[L]``, or None for "the first active lane") says who did it;
    ``detail`` maps the index of the offending lane to a line about it (its address, its index). ``fix`` says how to
    repair the program."""

    def __init__(self, text: str, lanes: Any = None, detail: Any = None, fix: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.lanes = lanes
        self.detail = detail
        self.fix = fix

    def first_lane(self, group: Any) -> int:
        """The index in the group's rows of the first lane at fault."""
        bad = self.lanes if self.lanes is not None else group.mask
        if bad is None or np.ndim(bad) == 0:  # one answer for all lanes that act
            bad = group.mask
        return 0 if bad is None else int(np.argmax(bad))
