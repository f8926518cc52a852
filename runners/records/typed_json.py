"""Read what was kept on disk: bytes become records whose fields have the declared types, or an
error that says why not."""

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from runners.records.description_rules import Rule

# Larger whole numbers fit into no array. It is unknown when an imported file was written.
_LARGEST = 2**63 - 1
_RULES = {
    bool: Rule("true or false", (bool,)),
    int: Rule("a whole number", (int,), least=-_LARGEST, most=_LARGEST),
    float: Rule("a number", (int, float), least=-_LARGEST, most=_LARGEST, or_unknown=True),
    str: Rule("a text", (str,), or_unknown=True),
}


def parsed(text: Union[str, bytes]) -> Any:
    """The JSON value of a text; raises ValueError if it is not JSON or not UTF-8."""
    try:
        value = json.loads(text)
        # JSON can contain a lone surrogate (\ud800); no other file can.
        if b"\\ud" in (text.encode() if isinstance(text, str) else text).lower():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"it has half a letter, {error.object[error.start]!a}") from None
    return value


def typed(kind: Any, value: Any, place: str = "") -> Any:
    """A value from JSON, at a place, as a value of this type or a record of this frozen dataclass;
    raises ValueError naming what does not fit."""
    if kind is Any:
        return value
    if rule := _RULES.get(kind):
        if rule.allows(value):
            return value
        raise _misfit(value, place, rule.words)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Union:  # Optional
        return None if value is None else typed(inside[0], value, place)
    if origin is tuple:
        if isinstance(value, list):
            return tuple([typed(inside[0], item, place) for item in value])
        raise _misfit(value, place, "a list")
    if not isinstance(value, dict):
        raise _misfit(value, place, "a table")
    if origin is Mapping:
        return {key: typed(inside[1], item, f"{place}.{key}") for key, item in value.items()}
    types, needed = _fields(kind)
    faults = [f"{key[:40]!r} is unknown" for key in value if key not in types]
    faults += [f"{name!r} is missing" for name in needed if name not in value]
    if faults:
        raise ValueError(f"{faults[0]}{place and f' in {place}'}")
    return kind(**{name: typed(types[name], item, name) for name, item in value.items()})


@cache  # a plan has 100,000 trials
def _fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """The types of a dataclass's fields by name, and the names of those without a default."""
    return get_type_hints(kind), [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
    ]


def _misfit(value: Any, place: str, wanted: str) -> ValueError:
    shown = json.dumps(value, default=str)[:40]
    return ValueError(f"{place.lstrip('.') or 'it'} is {shown}, not {wanted}")
