"""Methods of dataclasses that are written at their first call do what they would do at once."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from coset import deferred_methods

NOW = getattr(dataclasses, deferred_methods.MAKER, None)


@pytest.fixture
def deferring(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Classes of this module are taken for ours; the names of the methods that were written."""
    if NOW is None or sys.version_info >= deferred_methods.BEFORE:
        pytest.skip("this Python writes methods in another way, which is left as it is")
    written: list[str] = []

    def now(name: str, *given: Any, **named: Any) -> Any:
        written.append(name)
        return NOW(name, *given, **named)

    monkeypatch.setattr(deferred_methods, "PACKAGE", __name__.partition(".")[0])
    monkeypatch.setattr(dataclasses, deferred_methods.MAKER, deferred_methods._later(now))
    return written


def _plain() -> type[Any]:
    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        tags: tuple[str, ...] = field(default=(), compare=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    return Point


def _ordered() -> type[Any]:
    @dataclass(order=True)
    class Entry:
        name: str
        parts: list[int] = field(default_factory=list)

        def __post_init__(self) -> None:
            self.name = self.name.upper()

    return Entry


def test_nothing_is_written_before_it_is_called_and_then_once(deferring: list[str]) -> None:
    point = _plain()
    assert deferring == []
    one, other = point(1), point(1, 2, ("a",))
    assert deferring == ["__init__"]
    assert one == other and hash(one) == hash(other) and {one, other} == {one} and point(3) != one
    assert sorted(deferring) == ["__eq__", "__hash__", "__init__"]
    assert "Point(x=1, y=2, tags=('a',))" in repr(other) and repr(other) == repr(other)
    assert deferring.count("__repr__") == 1
    with pytest.raises(FrozenInstanceError, match="x"):
        one.x = 5
    with pytest.raises(FrozenInstanceError, match="y"):
        del one.y
    assert one.total == 3 and replace(one, y=5) == point(1, 5) and [each.name for each in fields(one)] == ["x", "y", "tags"]
    with pytest.raises(TypeError, match="x"):
        point()
    with pytest.raises(TypeError, match="z"):
        point(1, z=2)
    assert copy.deepcopy(other) == other


def test_what_is_built_on_such_a_class_has_its_methods_and_its_own(deferring: list[str]) -> None:
    point = _plain()

    @dataclass(frozen=True)
    class Named(point):  # type: ignore[misc, valid-type]
        name: str = ""

    class Bare(point):  # type: ignore[misc, valid-type]
        pass

    assert Bare(1) == Bare(1) and Bare(1) != point(1) and point(1) == point(1) and Named(1, name="a") != Named(1, name="b")
    assert Bare.__init__ is point.__init__ and Named.__init__ is not point.__init__
    assert deferring.count("__init__") == 2 and deferring.count("__eq__") == 2


def test_order_defaults_and_what_comes_after_are_kept(deferring: list[str]) -> None:
    entry = _ordered()
    one, other = entry("a"), entry("b", [1])
    one.parts.append(3)
    assert one.name == "A" and entry("a").parts == [] and one < other and other >= one and sorted([other, one]) == [one, other]
    with pytest.raises(TypeError):
        hash(one)


def test_classes_of_others_are_written_at_once(deferring: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_methods, "PACKAGE", "coset")
    _plain()
    assert {"__init__", "__repr__", "__eq__", "__hash__"} <= set(deferring)


def test_they_are_deferred_once_for_classes_that_are_loaded_behind_it() -> None:
    code = (
        "import dataclasses; from coset import deferred_methods as d; d.defer(); now = getattr(dataclasses, d.MAKER, None); d.defer(); "
        "assert getattr(dataclasses, d.MAKER, None) is now; from coset.ir.place import Place; print(Place('f', 1, 2, 'text', 3))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "Place(file='f', line=1, column=2, source='text', width=3)\n"
