"""Which closed forms a class may keep from its parents, and whether they are exact.

A declaration is one method: `penalty` of a formulation, `expression` of a loss. Closed
forms are formulas for what follows from it, written by hand. Two rules keep them
together with their declaration:

1. A class with another declaration than its parents keeps none of their closed forms.
2. `exact` is a statement of one class about all of its closed forms. It ends with every
   class that overrides one of them, or anything that they may depend on, and where a
   method is replaced later, in the class or in one instance.

Both end where a class states `exact` itself: then it speaks for what it inherits.
"""

from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...util.parameters import Parameters

# What does not follow from a declaration, and may differ without harm to closed forms.
KEPT = {"closed", "declares", "epigraph", "exact", "examples", "key", "listed", "name"}
KEPT |= {"bias_allowed", "labels", "outputs", "shape", "validate"}
HARMLESS = {"examples", "listed", "name", "validate"}


def _fields(cls: type) -> set[str]:
    """The parameters of a class, if it is a dataclass."""
    return {field.name for field in fields(cls)} if is_dataclass(cls) else set()


def _content(cls: type) -> dict[str, Any]:
    """What a class defines itself, without what every class has."""
    hidden = ("_contents", "_stated")
    return {k: v for k, v in vars(cls).items() if k[:2] != "__" and k not in hidden}


class Exact:
    """The attribute `exact`: as the nearest class states it, if nothing was changed."""

    def __get__(self, instance: Any, owner: type) -> bool:
        line = owner.__mro__[: owner.__mro__.index(ClosedForms)]
        speaker = next((c for c in line if "_stated" in vars(c)), None)
        if speaker is None or not speaker._stated:  # type: ignore[attr-defined]
            return False
        place, family = line.index(speaker), speaker.__mro__
        return (
            not any(_overrides(c, owner.__mro__) for c in line[:place])
            and all(c in family for c in line[place:])
            and not any(_was_changed(c) for c in line)
            and not _is_changed(instance, owner)
        )


def _overrides(cls: type, line: tuple[type, ...]) -> bool:
    """Whether a class redefines anything but a field of the classes after it."""
    names = _content(cls).keys() - HARMLESS
    later = line[line.index(cls) + 1 :]
    return any(
        name in vars(c) and name not in _fields(c) for c in later for name in names
    )


def _was_changed(cls: type) -> bool:
    """Whether methods of a class were replaced after it was made."""
    made, now = vars(cls).get("_contents"), _content(cls)
    if made is None:  # no formulation or loss: a mixin
        return False
    names = (made.keys() | now.keys()) - _fields(cls)
    return any(now.get(name) is not made.get(name) for name in names)


def _is_changed(instance: Any, owner: type) -> bool:
    """Whether an instance hides a method, or a parameter was replaced later."""
    kept = vars(instance) if instance is not None else {}
    parameters = _fields(owner)
    return any(
        _is_inexact(value) if name in parameters else _hides(owner, name)
        for name, value in kept.items()
    )


def _is_inexact(value: Any) -> bool:
    """A parameter that is evaluated in another precision, or inexact itself."""
    inner = isinstance(value, ClosedForms)
    return not value.exact if inner else isinstance(value, np.generic)


def _hides(owner: type, name: str) -> bool:
    found = next((vars(c)[name] for c in owner.__mro__ if name in vars(c)), None)
    return found is not None and not isinstance(found, cached_property)


class ClosedForms(Parameters):
    """What formulations and losses have in common: a declaration and closed forms."""

    declares: ClassVar[str] = ""  # the name of the method that is the declaration
    exact: ClassVar[Any] = Exact()

    def __init_subclass__(cls, **options: Any) -> None:
        """Drop closed forms of another declaration; note what the class consists of."""
        super().__init_subclass__(**options)
        if isinstance(vars(cls).get("exact"), bool):
            cls._stated = vars(cls)["exact"]
            del cls.exact
        _drop_closed_forms(cls)
        cls._contents = _content(cls)

    _stated: ClassVar[bool]
    _contents: ClassVar[dict[str, Any]]

    def closed(self, name: str) -> bool:
        """Whether a method has a closed form here, or is derived numerically.

        Parameters
        ----------
        name : str
            The name of a method, such as "prox".

        Returns
        -------
        bool
        """
        return getattr(type(self), name) is not getattr(_root(type(self)), name)


def _root(cls: type) -> type:
    """The class that says what a formulation, or a loss, is."""
    return cls.__mro__[cls.__mro__.index(ClosedForms) - 1]


def _drop_closed_forms(cls: type[ClosedForms]) -> None:
    """Rule 1: what is derived takes the place of closed forms of the parents."""
    root, line = _root(cls), cls.__mro__
    declaring = [c for c in line if cls.declares in vars(c) and c is not root]
    if len(declaring) < 2:
        return
    near = line[: line.index(declaring[0]) + 1]
    if any("_stated" in vars(c) for c in near):
        return
    own = {name for c in near for name in vars(c)}
    for name in vars(root).keys() - own - KEPT:
        if name[:2] != "__" and name not in ("_stated", "_contents"):
            setattr(cls, name, vars(root)[name])
