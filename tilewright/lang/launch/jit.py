"""``@cute.jit``: host functions that launch kernels, and functions that kernels call (they are inlined)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, overload

from tilewright.ir.builder import Builder
from tilewright.lang.arguments.signature import adapt, numeric_annotation
from tilewright.lang.launch.calls import MISS
from tilewright.lang.launch.marked import MarkedFunction, P, Q, R, mark
from tilewright.lang.launch.specialise import Specialisation
from tilewright.lang.launch.stage import arguments_of
from tilewright.lang.staging.builder import StagingBuilder
from tilewright.lang.staging.user_errors import show_users_frames

REMEMBERED = 64
"""Programs that a directly called function keeps for arguments of one kind: what they were staged from differed."""


class JitFunction(MarkedFunction[P, R]):
    """A function marked ``@cute.jit``.

    Called while something is staged, it is inlined there. Called from Python it is compiled for its arguments, at the
    first call with such arguments, and run.
    """

    word = "jit"

    @functools.cached_property
    def cache(self) -> dict[Any, Any]:
        """The compiled functions, by the kinds of arguments."""
        return {}

    last: Any = None
    """The function that the last call from Python ran."""

    @functools.cached_property
    def adapts(self) -> bool:
        return any(numeric_annotation(a) for a in self.signature.annotations.values())

    if TYPE_CHECKING:  # what the base class has, with the types of this one

        @overload
        def __get__(self, owner: None, cls: Any = None) -> JitFunction[P, R]: ...
        @overload
        def __get__(self: JitFunction[Concatenate[Any, Q], R], owner: object, cls: Any = None) -> JitFunction[Q, R]: ...
        def __get__(self, owner: Any, cls: Any = None) -> Any: ...

    # The first signature is what editors show. The second takes what stands for a parameter's type at a call from the
    # host: a number for Int32, any framework's array for Tensor (docs/internals.md, "Types").
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Builder.active():
            return self.inline(args, kwargs)
        __tracebackhide__ = True
        try:
            return run(self, args, kwargs)
        except Exception as error:
            show_users_frames(error)
            raise

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the body in the function that is being staged."""
        builder = Builder.current()
        if isinstance(builder, StagingBuilder):
            builder.dependencies.append(self.function)
        if not self.adapts:
            return self.code(*args, **kwargs)
        bound = self.signature.bind(args, kwargs)
        values = [adapt(name, value, note) for name, note, value in self.signature.parameters(bound)]
        return self.signature.call(self.code, bound, values)

    def __repr__(self) -> str:
        return f"<jit function {self.function.__qualname__}>"


def run(target: JitFunction[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a staged function from Python: compile it for such arguments, or take what was compiled before."""
    last = target.last
    if last is not None and not kwargs and len(args) == last.count and last.dependencies.hold():
        result = last.call(*args)
        if result is not MISS:
            return last.executor.result(result)
    fresh = kwargs.pop("no_cache", False) if "no_cache" not in target.signature.names else False
    bound = target.signature.bind(args, kwargs)
    arguments = arguments_of(target.signature, bound)
    key = tuple(argument.key() for argument in arguments)
    entries = [] if fresh else [entry for entry in target.cache.get(key, ()) if entry.dependencies.hold()]
    entry = entries[-1] if entries else Specialisation(target, bound, arguments)
    if not entries:
        kept = target.cache.setdefault(key, [])
        kept.append(entry)
        del kept[:-REMEMBERED]
    target.last = None if target.signature.variadic else entry
    values = [value for _, _, value in target.signature.parameters(bound)]
    return entry.executor.run([leaf for a, value in zip(arguments, values, strict=True) for leaf in a.read(value)])


@overload
def jit(function: Callable[P, R], *, preprocessor: bool = True) -> JitFunction[P, R]: ...
@overload
def jit(*, preprocessor: bool = True) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(function: Any = None, *, preprocessor: bool = True, **unknown: Any) -> Any:
    """Decorator, also with parentheses: ``@jit`` or ``@jit(preprocessor=False)`` (control flow is then left to
    Python).

    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     i, _, _ = cute.arch.thread_idx()
    ...     x[i] = 2 * x[i]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))
    >>> x = np.arange(4, dtype=np.float32)
    >>> run(x)  # compiled at the first call with such arguments; NumPy arrays: on the simulator
    >>> x
    array([0., 2., 4., 6.], dtype=float32)
    """
    return mark(JitFunction, function, preprocessor, unknown)
