"""Actions of asynchronous units that take place together: those of one instruction, each in a block of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class JointAction:
    """What an effect does (``Lanes.all_eventually``), in three parts: ``before_all`` and ``after_all`` for all the
    actions that take place together, ``alone`` for each. Called by itself, an action is all three. ``blocks``: whose
    memory it reads, writes or signals, as numbers that tell them apart; the actions of one set share none. Empty: it
    does not take place with others.

    Observers are notified once in each of ``before_all`` and ``after_all``, for all the actions.
    """

    blocks: frozenset[int] = frozenset()

    @classmethod
    def may(cls, actions: Sequence[Any]) -> bool:
        """Whether they may take place together now: not where one of them would be a fault in ``after_all``."""
        return True

    @classmethod
    def before_all(cls, actions: Sequence[Any]) -> None: ...

    def alone(self) -> None:
        raise NotImplementedError

    @classmethod
    def after_all(cls, actions: Sequence[Any]) -> None: ...

    def __call__(self) -> None:
        self.before_all([self])
        self.alone()
        self.after_all([self])


def disjoint(actions: Sequence[Any]) -> bool:
    """Whether there are several actions of one class, no two of which reach the memory of one block.

    >>> class Copy(JointAction):
    ...     def __init__(self, *blocks):
    ...         self.blocks = frozenset(blocks)
    >>> disjoint([Copy(0), Copy(1)]), disjoint([Copy(0), Copy(0)]), disjoint([Copy(0), Copy()]), disjoint([Copy(0)])
    (True, False, False, False)
    """
    kind = type(actions[0])
    if len(actions) < 2 or not issubclass(kind, JointAction):
        return False
    reached = [block for action in actions if type(action) is kind for block in action.blocks]
    return all(type(action) is kind and action.blocks for action in actions) and len(reached) == len(set(reached))
