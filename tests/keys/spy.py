"""A cache that shows its keys, and can be made blind for one component of them.

What every test of keys here says: two calls whose keys differ in *one* component lead to different outcomes, each that
of a call alone, and they would not without the component. So a component that is dropped from a key fails its test, as
does one that is added without a case: the tests also compare the whole structure of the keys with their cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[int, ...]
"""Where a component stands in nested tuples."""


class Spy(dict):
    """Stands for the dict of a cache. ``asked`` are the keys of its look-ups; ``blind`` is the component that all keys
    have in common for it."""

    def __init__(self, blind: Path | None = None) -> None:
        super().__init__()
        self.blind = blind
        self.asked: list[Any] = []

    def blinded(self, path: Path) -> Spy:
        """What is kept here, in a cache that is blind for ``path``."""
        blind = Spy(path)
        for key, value in self.items():
            blind[key] = value
        return blind

    def seen(self, key: Any) -> Any:
        self.asked.append(key)
        return key if self.blind is None else without(key, self.blind)

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self.seen(key), default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return super().setdefault(self.seen(key), default)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(self.seen(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.seen(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self.seen(key), value)


def without(key: Any, path: Path) -> Any:
    if not path:
        return "any"
    at, rest = path[0], path[1:]
    return (*key[:at], without(key[at], rest), *key[at + 1 :])


def components(key: Any, opened: set[Path], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The components of a key; of tuples at the paths ``opened``, each of their parts."""
    if path in opened and key is not None:  # what is not given has no parts
        for i, part in enumerate(key):
            yield from components(part, opened, (*path, i))
    else:
        yield path, key


def check(
    run: Callable[..., list[Any]], first: Any, second: Any, path: Path, opened: set[Path], needed: bool = True
) -> None:
    """``run(spy, *cases)`` gives the outcome of each case with ``spy`` as the cache. The keys of ``first`` and
    ``second`` differ in the component ``path`` alone, and need it (or, without ``needed``, are right with it)."""
    spy = Spy()
    run(spy, first)
    confused_cache = spy.blinded(path)
    second_outcome = run(spy, second)
    keys = list(dict.fromkeys(spy.asked))
    assert len(keys) == 2, "the cases have equal keys"
    pairs = zip(components(keys[0], opened), components(keys[1], opened), strict=True)
    assert [path for (path, a), (_, b) in pairs if a != b] == [path], "the keys must differ in this component alone"
    alone = run(Spy(), second)
    assert second_outcome == alone, "the second case took what was made for the first"
    if not needed:
        return
    try:
        confused = run(confused_cache, second)
    except Exception as error:
        confused = [str(error)]
    assert confused != alone, "the outcome is right without the component, too"
