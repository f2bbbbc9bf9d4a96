"""What a region may change: the variables that it assigns, and all that can be reached from the objects that it names.

Before a region, everything behind these objects is read (:mod:`contents`): a snapshot. After each side of it, the
snapshot is compared with what is there. A *place* is an element or attribute that differs and can be written: it is put
back before the other side, and carried as variables are. Any other difference (the length of a list, the keys of a
dict, the state of a generator of random numbers) is an error, as only one path of the program would have it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.class_modules import module_of
from tilewright.lang.staging.contents import NAMED, Held, Store, can_change, same, stores_of, unchanged
from tilewright.lang.staging.lasting import Entry, Lasting, gathered, is_lasting
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.objects import codec, has_protocol, is_record, same_static
from tilewright.lang.staging.undefined import Undefined


class ObjectPlace:
    """The element ``key`` of a store of ``holder``; ``before`` is what was there."""

    __slots__ = ("before", "holder", "key", "path", "store")

    def __init__(self, holder: Any, store: Store, key: Any, path: str, before: Any) -> None:
        self.holder, self.store, self.key, self.path, self.before = holder, store, key, path, before

    def get(self) -> Any:
        return self.store.get(self.holder, self.key)  # type: ignore[misc]  # places are in stores that have it

    def put(self, value: Any) -> None:
        self.store.write(self.holder, self.key, value)  # type: ignore[misc]  # see get


class RegionState:
    """All that a region may change: the variables that it assigns, and the ``places`` that were seen to change.

    ``labels`` name them, ``before`` is what they held before; lists of objects in this order are what regions exchange.
    A list that was made before another place was found is shorter: the rest is as before.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], touched: Sequence[str], objects: Sequence[Any]
    ) -> None:
        self.names, self.count = names, len(names)
        self.labels, self.before = [*names], [*values]
        self.places: dict[tuple[int, int, Any], ObjectPlace] = {}
        self._snapshot: list[Entry] = []
        self._lasting: list[Lasting] = []
        self._seen: dict[int, Any] = {}
        for name, value in zip(touched, objects, strict=True):
            self._visit(name, value, True)

    def now(self, values: Sequence[Any], region: Any) -> list[Any]:
        """The values of variables and places at the end of a region. An error where it changed what may not change."""
        changed = [lasting.entries for lasting in self._lasting if not lasting.unchanged()]
        for path, holder, cls, store, before in chain(self._snapshot, *changed):
            if type(holder) is not cls:
                raise _changes(path, "class", region, holder)
            held = store.read(holder)
            if not unchanged(before, held):
                self._compare(path, holder, store, before, held, values, region)
        return [*values, *(place.get() for place in self.places.values())]

    def changed(self) -> Iterator[ObjectPlace]:
        """The places that are not as they were."""
        return (place for place in self.places.values() if not same(place.get(), place.before))

    def restore(self, objects: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Put objects (without them, those of ``before``) into the places, and give those of the variables back."""
        objects = [*objects, *self.before[len(objects) :]]
        for place, value in zip(self.places.values(), objects[self.count :], strict=True):
            if isinstance(value, Undefined):
                raise fail(f"'{place.path}' has no value after this: {value.reason}")
            if place.get() is not value:
                place.put(value)
        return tuple(objects[: self.count])

    def expect(self, labels: set[str]) -> None:
        """Count places with these labels to those that change."""
        if not labels.difference(self.labels):
            return
        for path, holder, _, store, before in chain(self._snapshot, *[lasting.entries for lasting in self._lasting]):
            if store.write is not None and any(label.startswith(path) for label in labels):
                for key, value in before.items():
                    if store.label.format(path=path, key=key) in labels:
                        self._add(path, holder, store, key, value)

    def _compare(
        self, path: str, holder: Any, store: Store, before: Held, held: Held, values: Sequence[Any], region: Any
    ) -> None:
        """Find the places of one store that changed."""
        held = _without_forgotten(holder, before, held)
        keys = list(held)
        # New keys may only be what a cached_property remembers: it would be computed on either path.
        kept = keys[: len(before)] == list(before)
        if not kept or not all(_is_cached(holder, key, held[key]) for key in keys[len(before) :]):
            raise _changes(path, store.word, region, holder)
        if store.write is None:
            assigned = dict(zip(self.names, values, strict=True))  # a closure sees them change
            if not all(same(held[k], v) or (k in assigned and assigned[k] is held[k]) for k, v in before.items()):
                raise _changes(path, store.word, region, holder)
            return
        for key, value in before.items():
            if not same(held[key], value):
                self._add(path, holder, store, key, value)

    def _add(self, path: str, holder: Any, store: Store, key: Any, before: Any) -> None:
        where = (id(holder), id(store), key)
        if where not in self.places:
            label = store.label.format(path=path, key=key)
            self.places[where] = ObjectPlace(holder, store, key, label, before)
            self.labels.append(label)
            self.before.append(before)

    def _visit(self, path: str, value: Any, by_name: bool = False) -> None:
        cls = type(value)
        stores = stores_of(cls)
        if not stores or id(value) in self._seen:
            return
        if is_lasting(value):
            self._lasting.append(gathered(path, value))
            self._seen.update(self._lasting[-1].members)
            for other in self._lasting[-1].others:
                self._visit(*other)
            return
        self._seen[id(value)] = value
        if has_protocol(value) and not module_of(cls).startswith("tilewright."):
            _note(value)
        for store in stores:
            try:
                held = store.read(value)
            except Exception:  # it cannot be pickled, whatever its class raises then
                iterates = hasattr(cls, "__next__")
                if by_name or iterates:
                    advice = "take a list of its items, or make" if iterates else "make"
                    raise fail(
                        f"'{path}' is a {cls.__name__} from outside the region, whose changes cannot be seen: it would "
                        f"change once, while staging; {advice} it inside"
                    ) from None
                continue
            self._snapshot.append((path, value, cls, store, held))
            if not store.state:
                for key, item in held.items():
                    if stores_of(type(item)):  # most have none: a call less for each
                        self._visit(store.label.format(path=path, key=key), item, store.label in NAMED)
        self._visit(cls.__name__, cls)


def _changes(path: str, word: str, region: Any, holder: Any) -> Exception:
    advice = "keep it in an object" if isinstance(holder, type) else f"make the {type(holder).__name__} inside"
    advice = f"take a list of its items, or {advice}" if hasattr(type(holder), "__next__") else f"or {advice}"
    return fail(
        f"'{path}' changes its {word} in the {region}, which is staged once and runs many times or never; "
        f"assign to places that exist before the region, {advice}"
    )


def _note(value: Any) -> None:
    """A class may note in the object how its values are divided: then the note is there before the region, too. A list
    that says the same as before stays the same object: regions inside of others would see it change."""
    held = getattr(value, "__dict__", {})
    before = dict(held)
    with contextlib.suppress(Exception):  # an object that is not complete yet
        value.__extract_mlir_values__()
    for name, old in before.items():
        new = held.get(name)
        if type(old) is list and type(new) is list and len(old) == len(new) and all(map(same, old, new)):
            held[name] = old


def _without_forgotten(holder: Any, before: Held, held: Held) -> Held:
    """Take the attributes back that a region adds to an object of the value protocol, if a copy of it would not have
    them: past the end of a region, the protocol's object is such a copy. ``hasattr`` tells the class that."""
    new = [key for key in held if key not in before]
    attributes = getattr(holder, "__dict__", {})
    if not new or not has_protocol(holder) or any(k not in attributes or hasattr(type(holder), k) for k in new):
        return held
    try:
        copy = holder.__new_from_mlir_values__(holder.__extract_mlir_values__())
    except Exception:  # whatever a class of the program raises where it is not complete
        return held
    if copy is holder or any(hasattr(copy, key) for key in new):
        return held
    for key in new:
        delattr(holder, key)
    return {key: value for key, value in held.items() if key in before}


def _is_cached(holder: Any, key: Any, value: Any) -> bool:
    """Whether an attribute is what a ``cached_property`` remembers, holds nothing of the program, and would be the same
    if it were computed after the region only, as on the path on which the region does not run."""
    cached = getattr(type(holder), str(key), None)
    if not isinstance(cached, functools.cached_property) or run_time.spec_of(value, promote=False).types():
        return False
    return same_static(cached.func(holder), value)


def detached(value: Any, kept: set[int]) -> Any:
    """A copy of an object that is not changed by what is put into its places or those of its parts; the objects with
    the identities ``kept`` stay themselves."""
    if id(value) in kept:
        return value
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        split, make = codec(value)
        return make([detached(item, kept) for item in split(value)])
    if has_protocol(value) and can_change(value):
        return value.__new_from_mlir_values__(value.__extract_mlir_values__())
    return value
