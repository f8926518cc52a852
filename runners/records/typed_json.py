"""Read what was kept on disk: bytes become records whose fields have the declared types, or an
error that says why not."""

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import (
    Any,
    Callable,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Record = TypeVar("Record")

# Larger whole numbers fit into no array.
_LARGEST = 2**63 - 1


def parsed(text: Union[str, bytes]) -> Any:
    """The JSON value of a text; raises ValueError if it is not JSON or not UTF-8."""
    try:
        value = json.loads(text)
        # JSON can contain a lone surrogate (\ud800); no other file can.
        if ("\\ud" if isinstance(text, str) else b"\\ud") in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"it has half a letter, {error.object[error.start]!a}") from None
    return value


def record(kind: type[Record], value: Any) -> Record:
    """A value from JSON as a record of this frozen dataclass; raises ValueError naming what does
    not fit."""
    return _maker(kind)(value, "")


@cache  # a plan has 100,000 trials
def _maker(kind: Any) -> Callable[[Any, str], Any]:
    """The function that makes a value of a type from JSON and the place where it stands."""
    if dataclasses.is_dataclass(kind):
        return _record_maker(kind)
    if kind is Any:
        return lambda value, place: value
    origin, inside = get_origin(kind), get_args(kind)
    if not inside:
        fits, wanted = _PLAIN[kind]

        def plain(value: Any, place: str) -> Any:
            if fits(value):
                return value
            raise _misfit(value, place, wanted)

        return plain
    make = _maker(inside[1] if origin is Mapping else inside[0])

    def made(value: Any, place: str) -> Any:
        if origin is Union:  # Optional
            return None if value is None else make(value, place)
        if origin is tuple:
            if isinstance(value, list):
                return tuple([make(item, place) for item in value])
            raise _misfit(value, place, "a list")
        if not isinstance(value, dict):
            raise _misfit(value, place, "a table")
        return {key: make(item, f"{place}.{key}") for key, item in value.items()}

    return made


# Not a number: it is unknown when an imported file was written.
_PLAIN: Mapping[type, tuple[Callable[[Any], bool], str]] = {
    float: (
        lambda value: type(value) in (int, float) and (value != value or abs(value) <= _LARGEST),
        "a number",
    ),
    int: (lambda value: type(value) is int and abs(value) <= _LARGEST, "a whole number"),
    str: (lambda value: type(value) is str, "a text"),
    bool: (lambda value: type(value) is bool, "true or false"),
}


def _record_maker(kind: Any) -> Callable[[Any, str], Any]:
    fields = dataclasses.fields(kind)
    types = get_type_hints(kind)
    makers = {field.name: _maker(types[field.name]) for field in fields}
    needed = [
        field.name
        for field in fields
        if field.default is field.default_factory is dataclasses.MISSING
    ]

    def made(value: Any, place: str) -> Any:
        if not isinstance(value, dict):
            raise _misfit(value, place, "a table")
        for key in value:
            if key not in makers:
                raise ValueError(f"{key[:40]!r} is unknown{place and f' in {place}'}")
        for name in needed:
            if name not in value:
                raise ValueError(f"{name!r} is missing{place and f' in {place}'}")
        return kind(**{name: makers[name](field, name) for name, field in value.items()})

    return made


def _misfit(value: Any, place: str, wanted: str) -> ValueError:
    shown = json.dumps(value, default=str)[:40]
    return ValueError(f"{place.lstrip('.') or 'it'} is {shown}, not {wanted}")
