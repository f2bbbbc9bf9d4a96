"""What a region may change: the variables that it assigns, and what lies behind the objects that it names.

A *place* is a list's element, a dict's value or an attribute of a user's object. Before a region, the places behind
the variables that its body names are remembered; after it, those that hold something else are carried as variables are.
Functions are entered for what their closures hold and which global objects they name. What cannot differ from one path
of a program to the other (the length of a list, the keys of a dict, which attributes an object has, the elements of a
set or deque, NumPy arrays) may not change: that is an error. Objects that cannot change (layouts, tensors, numerics)
are not entered, nor are tables longer than any state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.lang.staging import values as run_time
from tilewright.lang.staging.contents import PLACES, contents, globals_of, kind_of, label_of, same
from tilewright.lang.staging.location import fail
from tilewright.lang.staging.objects import codec, has_protocol, is_record, labels_of

TABLE = 1024
"""A longer list or dict is a table of constants: its elements are not carried."""
ONE_OF_TWO = (
    "it is one of two objects that can change, and only the running program knows which; take a copy of each "
    "(`list(x)`, `x.clone()`), or choose between their numbers"
)


class Place:
    """``holder[key]`` (an item) or ``holder.key``; ``before`` is what was there."""

    __slots__ = ("before", "holder", "is_item", "key", "path")

    def __init__(self, holder: Any, key: Any, path: str, is_item: bool, before: Any) -> None:
        self.holder, self.key, self.path, self.is_item, self.before = holder, key, path, is_item, before

    def get(self) -> Any:
        return self.holder[self.key] if self.is_item else getattr(self.holder, self.key)

    def put(self, value: Any) -> None:
        if self.is_item:
            self.holder[self.key] = value
        else:
            object.__setattr__(self.holder, self.key, value)


class State:
    """All that a region may change: the variables that it assigns, and the ``places`` behind those that it names.

    ``labels`` name them, ``before`` is what they held before; lists of objects in this order are what regions exchange.
    """

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], touched: Sequence[str], objects: Sequence[Any]
    ) -> None:
        self.places: list[Place] = []
        self._watched: list[tuple[str, Any, dict[Any, Any]]] = []
        self._seen: dict[int, Any] = {}
        for name, value in zip(touched, objects, strict=True):
            self._visit(name, value)
        self.count = len(names)
        self.labels = [*names, *(place.path for place in self.places)]
        self.before = [*values, *(place.before for place in self.places)]

    def now(self, values: Sequence[Any], region: Any) -> list[Any]:
        """What variables and places hold at the end of a region. An error where it changed what may not change."""
        for path, holder, before in self._watched:
            kind, now = kind_of(type(holder)), contents(holder)
            kept = list(now) == list(before) and (kind in PLACES or all(map(same, now.values(), before.values())))
            if not kept and not (kind == "object" and _only_adds_static(now, before)):
                what = {"list": "length", "dict": "keys", "watched": "contents"}.get(kind, "attributes")
                made = "keep it in an object" if kind == "class" else f"make the {type(holder).__name__} inside"
                raise fail(
                    f"'{path}' changes its {what} in the {region}, which is staged once and runs many times or never; "
                    f"assign to places that exist before the region, or {made}"
                )
        return [*values, *(place.get() for place in self.places)]

    def end(self, values: Sequence[Any], region: Any) -> tuple[list[Any], list[Any]]:
        """The same for a region after which the places are restored; and again, with copies of what changes then."""
        now = self.now(values, region)
        kept = all(map(same, now[self.count :], self.before[self.count :]))
        return now, list(now) if kept else [detached(value) for value in now]

    def moves(self, value: Any, before: Any) -> bool:
        """Whether ``value``, which is where ``before`` was, is or holds an object of before the region that can change
        and was elsewhere: it goes by two names now, and what is written to one of them shows under the other."""
        kind = kind_of(type(value))
        if value is before or kind in ("fixed", "class"):
            return False
        if kind != "entered" and id(value) in self._seen:
            return True
        if not isinstance(value, (tuple, list, dict)) and not is_record(value):
            return False
        split, _ = codec(value)
        alike = type(before) is type(value) and labels_of(before) == labels_of(value)
        olds = split(before) if alike else [None] * len(split(value))
        return any(map(self.moves, split(value), olds))

    def changed(self) -> Iterator[Place]:
        """The places that are not as they were."""
        return (place for place in self.places if not same(place.get(), place.before))

    def restore(self, objects: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Put objects (those of ``before``) into the places, and give those of the variables back."""
        objects = self.before if objects is None else objects
        for place, value in zip(self.places, objects[self.count :], strict=True):
            if place.get() is not value:
                place.put(value)
        return tuple(objects[: self.count])

    def _visit(self, path: str, value: Any) -> None:
        kind = kind_of(type(value))
        if kind == "fixed" or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if kind == "iterator":
            raise fail(f"'{path}' is an iterator from outside the region: it would advance once, while staging; take a "
                       "list of its items, or make it inside")  # fmt: skip
        if kind in ("list", "dict", "watched") and max(len(value), getattr(value, "nbytes", 0) // 8) > TABLE:
            return
        held = contents(value)
        if kind != "entered":
            self._watched.append((path, value, held))
        for key, item in held.items() if kind != "class" else ():
            place = f"{path}.{key}" if kind == "object" else label_of(path, value, key)
            if kind in PLACES:
                self.places.append(Place(value, key, place, kind != "object", item))
            if kind_of(type(item)) != "fixed":  # most are: a call less for each
                self._visit(place, item)
        if kind == "object":
            self._visit(type(value).__name__, type(value))
            for name, scope in globals_of(type(value)):
                self._visit(name, scope.get(name))


def _only_adds_static(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    """Whether an object got attributes that hold nothing of the program, such as a layout that it keeps."""
    new = [item for name, item in now.items() if name not in before]
    return before.keys() <= now.keys() and not any(run_time.spec_of(item, promote=False).types() for item in new)


def detached(value: Any) -> Any:
    """A copy of an object that is not changed by what is put into its places or those of its parts."""
    if isinstance(value, (tuple, list, dict)) or is_record(value):
        split, make = codec(value)
        return make([detached(item) for item in split(value)])
    if has_protocol(value) and kind_of(type(value)) == "object":
        return value.__new_from_mlir_values__(value.__extract_mlir_values__())
    return value
