"""What all descriptions share: how a table becomes a class, the kinds of its values, and the faults
of one, each in words."""

import json
import math
import tomllib
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from runners import executables
from runners.records.description_rules import (
    BLOCKS,
    COUNT,
    NAME,
    NOT_NEGATIVE,
    POSITIVE,
    REAL,
    WHOLE,
    YES_OR_NO,
    Rule,
    up_to,
)
from runners.records.journal import write_whole
from runners.records.record import FalloffError, faulty, unknown, unknown_key

_OURS = "ours"  # the type of an error whose message is ours
_IN_JSON = {bool: "boolean", int: "integer", float: "number", str: "string"}
_KEY = "[key]"  # of a place: a key is meant, and not its value
MEMBERS = ("(statement)", "(level)")  # of a place: the kind of an item, which no file names


class TomlTable(BaseModel):
    """A table of a description: its keys are the class's fields and no others.

    A whole number stays one where any number is allowed, so that `plain` gives back what was read.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def plain(self) -> dict[str, Any]:
        """The table as a dict, with the keys that were given and no others."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)

    def changed(self, **fields: Any) -> Self:
        """The same table with other values in some fields, which are not checked again."""
        return self.model_copy(update=fields)

    def with_changes(self, other: "TomlTable") -> Self:
        """The same table with what another one states in its fields; the other may state more."""
        stated = other.model_fields_set & type(self).model_fields.keys()
        return self.changed(**{name: getattr(other, name) for name in stated})

    def unset(self, field: str) -> Self:
        """The same table as if this field had not been given."""
        copy = self.model_copy(update={field: type(self).model_fields[field].get_default()})
        copy.model_fields_set.discard(field)
        return copy


Kind = TypeVar("Kind")


def must_be(meaning: str) -> WrapValidator:
    """Refuse a value of the wrong kind with one sentence: it must be `meaning`."""

    def check(value: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise _wrong(meaning) from None

    return WrapValidator(check)


def _wrong(meaning: str) -> PydanticCustomError:
    return PydanticCustomError(_OURS, "must be {meaning}", {"meaning": meaning})


@dataclass(frozen=True)
class Ruled:
    """Marks a type of values that a rule allows."""

    rule: Rule

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        rule, kinds = self.rule, [_IN_JSON[kind] for kind in self.rule.kinds]
        parts: dict[str, Any] = {
            "type": kinds,
            "minimum": rule.least,
            "maximum": rule.most,
            "exclusiveMinimum": rule.above,
            "exclusiveMaximum": rule.below,
            "enum": [*rule.values],
            "pattern": rule.pattern and f"^(?:{rule.pattern})$",
            "minLength": int(str in rule.kinds),
        }
        unstated: list[Any] = [math.inf, -math.inf, [], ""]
        return {key: part for key, part in parts.items() if part not in unstated}

    def _checked(self, value: Any) -> Any:
        if self.rule.allows(value):
            return value
        raise _wrong(self.rule.words)


def text(pattern: str, meaning: str) -> Ruled:
    """Marks the type of a text that matches the whole pattern."""
    return Ruled(Rule(meaning, (str,), pattern=pattern))


Name = Annotated[str, Ruled(NAME)]
Count = Annotated[int, Ruled(COUNT)]
Whole = Annotated[int, Ruled(WHOLE)]
Blocks = Annotated[int, Ruled(BLOCKS)]
Nodes = Annotated[int, Ruled(up_to(65536))]
YesOrNo = Annotated[bool, Ruled(YES_OR_NO)]
Positive = Annotated[float, Ruled(POSITIVE)]
NotNegative = Annotated[float, Ruled(NOT_NEGATIVE)]
Share = Annotated[float, Ruled(Rule("a share between 0 and 1", (int, float), above=0, below=1))]
Real = Annotated[float, Ruled(REAL)]
# Any number, also an infinite one, which is none in JSON.
Limit = Annotated[int | float, must_be("a number"), WithJsonSchema({"type": ["number", "null"]})]
Setting = Annotated[
    bool | int | Annotated[float, Field(allow_inf_nan=False)] | str,
    must_be("a number, a text, true or false"),
]
Settings = dict[str, Setting]
Word = Annotated[str, text(r"[A-Za-z0-9_]+", "a name of letters, digits and _")]
Line = Annotated[str, text(r"[ -~]+", "a line of text")]


def fault(place: tuple[str | int, ...], value: Any, words: str) -> InitErrorDetails:
    """A fault at a place below the value that a validator is given, for `refuse`."""
    return {"type": PydanticCustomError(_OURS, words), "loc": place, "input": value}


def refuse(faults: list[InitErrorDetails]) -> None:
    """Raise pydantic's error with these faults, if there are any."""
    if faults:
        raise ValidationError.from_exception_data("description", faults)


def parse(kind: type[Kind], table: Mapping[str, Any], what: str, **context: Any) -> Kind:
    """A table as a class, or tables by name as a dict of classes; raises FalloffError naming every
    fault. `what` is the description, and `context` what its validators need to know."""
    try:
        return TypeAdapter(kind).validate_python(table, context=context)
    except ValidationError as error:
        raise faulty(what, _sentences(kind, error)) from None


def plain(tables: Mapping[str, TomlTable]) -> dict[str, dict[str, Any]]:
    """Tables as plain dicts, by name."""
    return {name: table.plain() for name, table in tables.items()}


def faults(kind: type[TomlTable], table: Any, **context: Any) -> list[str]:
    """Everything that is wrong with a table, one sentence each; empty if nothing is."""
    try:
        kind.model_validate(table, context=context)
    except ValidationError as error:
        return _sentences(kind, error)
    return []


def _sentences(kind: Any, error: ValidationError) -> list[str]:
    return list(dict.fromkeys(_sentence(kind, dict(fault)) for fault in error.errors()))


def _sentence(kind: Any, error: Mapping[str, Any]) -> str:
    """A fault of pydantic's in our words: its place, what is there, and what should be."""
    parts = [part for part in error["loc"] if part not in (*MEMBERS, _KEY)]
    place, whole = _dotted(parts[:-1]), _dotted(parts)
    match error["type"]:
        case "missing":
            return f"{whole} is missing"
        case "extra_forbidden":
            within = f"{place}." if place else ""
            return unknown_key(within, str(parts[-1]), _keys(kind, parts[:-1]))
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{whole} = {_shown(error['input'])} must be a table"
        case "list_type":
            of_tables = f" of tables: [[{whole}]]" if isinstance(error["input"], dict) else ""
            return f"{whole} = {_shown(error['input'])} must be a list{of_tables}"
        case "value_error":
            return f"{whole}{': ' if whole else ''}{error['ctx']['error']}"
    # TOML has no None: the key is not there.
    if _KEY in error["loc"] or error["input"] is None:
        return f"{whole} {error['msg']}"
    words = error["msg"].replace("Input should be", "must be")
    return f"{whole} = {_shown(error['input'])} {words}"


def _shown(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 60 else f"{written[:57]}..."


def _dotted(parts: list[str | int]) -> str:
    """A place as TOML writes it; items of a list count from 1."""
    place = ""
    for part in parts:
        place += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return place


def _keys(kind: Any, parts: list[str | int]) -> list[str]:
    """The keys of the table at a place below a class."""
    tables = _tables(kind)
    for part in parts:  # an index, or any key of a table of tables, leads to the same class
        types = [field.annotation for key, field in _fields(tables) if key == part]
        tables = [table for inside in types for table in _tables(inside)] if types else tables
    return [key for key, _ in _fields(tables)]


def _fields(tables: list[type[TomlTable]]) -> list[tuple[str, FieldInfo]]:
    every = [pair for table in tables for pair in table.model_fields.items()]
    return [(field.alias or name, field) for name, field in every]


def _tables(kind: Any) -> list[type[TomlTable]]:
    """The classes that are somewhere in a type."""
    if isinstance(kind, type) and issubclass(kind, TomlTable):
        return [kind]
    return [table for inside in typing.get_args(kind) for table in _tables(inside)]


def read_toml(file: Path, kind: str) -> dict[str, Any]:
    """A description as a dict; raises FalloffError if there is none of that name, or it is not
    valid TOML."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        json.dumps(table)
        return table
    except TypeError:
        raise FalloffError(
            f"{file} has a date, which no description has: put it in quotes"
        ) from None
    except RecursionError:
        raise FalloffError(f"{file} is not valid TOML: it is nested too deeply") from None
    except FileNotFoundError:
        names = [other.stem for other in executables.described(file.parent, "*.toml")]
        raise unknown(kind, file.stem, names) from None
    except OSError as error:
        raise FalloffError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FalloffError(f"{file} is not valid TOML: {error}") from None
    except ValueError as error:  # for an invalid name, such as one with a null byte
        raise FalloffError(f"cannot read {file}: {error}") from None


def described(kind: str, table: Mapping[str, Any], file: str = "") -> str:
    """What a fault's line calls a description: also the file that it extends, where the fault may
    be."""
    base = f" (extends {table['extends']})" if "extends" in table else ""
    return f"{kind} {file or table.get('name', '?')}{base}"


Joined = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def extended(
    folder: Path, name: str, kind: str, joined: Joined, by: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The file of a name with everything that it extends; `joined(base, own)` puts two together.

    The user's own file comes before that of the checkout. `by` are the files that extend this one.
    Raises FalloffError like `read_toml`, and for files that extend each other in a circle.
    """
    if name in by:
        circle = " extends ".join((*by[by.index(name) :], name))
        raise FalloffError(f"{kind} {by[0]} never ends: {circle}; take out one `extends`")
    mine = executables.users_folder(folder) / f"{name}.toml"
    table = read_toml(mine if mine.exists() else folder / f"{name}.toml", kind)
    base = table.get("extends")
    if not isinstance(base, (str, type(None))):
        raise FalloffError(f"{kind} {name}: extends = {base!r} must be the name of a {kind}")
    return joined(extended(folder, base, kind, joined, (*by, name)), table) if base else table


def write_own(folder: Path, name: str, text: str, option: str) -> Path:
    """Write a description of the user's own; raises FalloffError if one of that name, which
    `option` gave, says something else.
    """
    file = executables.users_folder(folder) / f"{name}.toml"
    for there in (folder / file.name, file):
        if there.exists() and there.read_text(encoding="utf-8") != text:
            remedy = f"give another {option}, or move it away"
            raise FalloffError(f"{there} is there and says something else: {remedy}")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode())
    return file
