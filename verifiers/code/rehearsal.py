"""Runs test code with nothing in the completion's place, to see whether it comes to use the completion at all.

Runs inside the sandbox, in the driver. Tests that end before that are broken, whatever a completion does; and whether
they are must not hang on the completion, which might define something that cannot even be asked.
"""

from collections.abc import Callable
from typing import Any

from verifiers.code.channel import FORWARDED


class Reached(BaseException):
    """The tests use the completion."""


class Nothing:
    """Stands for what the completion would define; notes any use."""

    def __init__(self) -> None:
        object.__setattr__(self, "reached", [])

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "reached").append(name)
        raise Reached

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)


def _use(name: str) -> Callable[..., Any]:
    def use(self: Nothing, *_arguments: Any, **_keywords: Any) -> Any:
        return getattr(self, name)

    return use


for _name in FORWARDED | {"str", "repr", "instancecheck", "subclasscheck"}:
    setattr(Nothing, f"__{_name}__", _use(_name))


def rehearse(nothing: Nothing, run: Callable[[], Any]) -> tuple[bool, BaseException | None]:
    """Run test code in which `nothing` stands for the completion; return whether it was used, and what ended it."""
    ending: BaseException | None = None
    try:
        run()
    except BaseException as raised:
        ending = raised
    return bool(object.__getattribute__(nothing, "reached")), ending
