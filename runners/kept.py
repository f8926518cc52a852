"""Read what was kept on disk: bytes become records whose fields have the declared types, or an
error that says why not."""

import dataclasses
import json
from collections.abc import Mapping as _Mapping
from functools import lru_cache
from typing import Any, Dict, Type, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")

# Larger whole numbers fit into no array.
_LARGEST = 2**63 - 1


def parsed(text: Union[str, bytes]) -> Any:
    """The JSON value of a text; raises ValueError if it is not JSON or not UTF-8."""
    try:
        found = json.loads(text)
        # JSON can contain a lone surrogate (\ud800); no other file can.
        if ("\\ud" if isinstance(text, str) else b"\\ud") in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"it has half a letter, {error.object[error.start]!a}") from None
    return found


def record(kind: Type[Record], value: Any) -> Record:
    """A value from JSON as a record of this frozen dataclass; raises ValueError naming what does
    not fit."""
    return _made(kind, value, "")


def _made(kind: Any, value: Any, place: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, place)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Union:  # Optional
        return None if value is None else _made(inside[0], value, place)
    if origin is tuple:
        _require(isinstance(value, list), value, place, "a list")
        return tuple(_made(inside[0], one, place) for one in value)
    if origin is _Mapping:
        _require(isinstance(value, dict), value, place, "a table")
        return {key: _made(inside[1], one, f"{place}.{key}") for key, one in value.items()}
    if kind is float:
        # Not a number: it is unknown when an imported file was written.
        is_number = type(value) in (int, float) and (value != value or abs(value) <= _LARGEST)
        _require(is_number, value, place, "a number")
    elif kind is int:
        is_whole = type(value) is int and abs(value) <= _LARGEST
        _require(is_whole, value, place, "a whole number")
    elif kind is not Any:
        _require(type(value) is kind, value, place, {str: "a text", bool: "true or false"}[kind])
    return value


def _record(kind: Any, value: Any, place: str) -> Any:
    _require(isinstance(value, dict), value, place, "a table")
    types, fields = _types(kind), {field.name: field for field in dataclasses.fields(kind)}
    strange = [key for key in value if key not in fields]
    if strange:
        raise ValueError(f"{strange[0][:40]!r} is unknown{place and f' in {place}'}")
    for name, field in fields.items():
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if name not in value and not optional:
            raise ValueError(f"{name!r} is missing{place and f' in {place}'}")
    return kind(**{name: _made(types[name], one, name) for name, one in value.items()})


@lru_cache(maxsize=None)
def _types(kind: Any) -> Dict[str, Any]:
    return get_type_hints(kind)


def _require(holds: bool, value: Any, place: str, wanted: str) -> None:
    if not holds:
        shown = json.dumps(value, default=str)[:40]
        raise ValueError(f"{place.lstrip('.') or 'it'} is {shown}, not {wanted}")
