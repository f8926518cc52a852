"""The functions of the installed mpi.h, and how the recorder treats each; the rules are in
runners/src/mpi_rules.txt.

All functions that the header declares are wrapped, so none can be forgotten. A function without a
rule is refused by name when a program calls it.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runners.records.record import FalloffError

RULES = Path(__file__).resolve().parents[1] / "src" / "mpi_rules.txt"
DEFAULT = "refused"

_HEADERS = """#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
"""
# A declaration in the preprocessed header, after its attributes were removed.
_DECLARATION = re.compile(r"(?:^|[;}])\s*(?:extern )?(\w+) (MPIX?_\w+) ?\(([^;{}]*)\)\s*(?=;)")
_ATTRIBUTE = re.compile(r"__attribute__ *\(\((?:[^()]|\([^()]*\))*\)\)")
_PARAMETER = re.compile(r"(\w+)\s*((?:\[\w*\])*)$")


@dataclass(frozen=True)
class Function:
    """An MPI function as declared in C: its return type, name, parameters and their names."""

    result: str
    name: str
    parameters: str
    arguments: tuple[str, ...]


def declared(compiler: str) -> list[Function]:
    """All MPI functions that the header of `compiler` (an mpicc) declares, including those that MPI
    3 removed.

    Raises FalloffError if it cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "functions.c"
        source.write_text(_HEADERS)
        # Under C11 Open MPI's header hides the functions that MPI 3 removed; a program may still
        # call them.
        argv = [compiler, "-std=gnu99", "-E", "-P", "-DSMPI_NO_OVERRIDE_MALLOC", str(source)]
        done = subprocess.run(argv, capture_output=True, text=True)
    text = " ".join(_ATTRIBUTE.sub(" ", done.stdout).split())
    declarations = {name: (result, words) for result, name, words in _DECLARATION.findall(text)}
    if done.returncode or "MPI_Init" not in declarations:
        complaint = (done.stderr.strip().splitlines() or ["it declares no MPI_Init"])[0]
        raise FalloffError(f"the mpi.h of {compiler} cannot be read: {complaint}")
    return [
        Function(result, name, words, _names(words))
        for name, (result, words) in declarations.items()
    ]


def _names(parameters: str) -> tuple[str, ...]:
    """The names of the parameters; raises FalloffError if one has none."""
    if parameters.strip() in ("void", ""):
        return ()
    words = [word.strip() for word in parameters.split(",")]
    matches = [_PARAMETER.search(word) for word in words if word != "..."]
    if not all(match and match.start() for match in matches):
        raise FalloffError(f"mpi.h has parameters without a name: {parameters}")
    return tuple(match[1] for match in matches if match)


def rules() -> dict[str, str]:
    """The rule of each function by name; in the file a star follows those that some MPIs lack."""
    rule_of, rule = {}, DEFAULT
    for line in RULES.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].startswith("["):
            rule = words[0].strip("[]")
            continue
        for word in words:
            name = word.rstrip("*")
            rule_of[name if name.startswith("MPIX_") else f"MPI_{name}"] = rule
    return rule_of


def wrappers(compiler: str) -> str:
    """The lines that record.c includes: one for each function that is not local, a macro named
    after its rule. One that makes a communicator names that argument, too."""
    rule_of, lines = rules(), []
    for function in declared(compiler):
        rule, arguments = rule_of.get(function.name, DEFAULT), function.arguments
        words = [function.result, function.name]
        words += [f"({function.parameters})", f"({', '.join(arguments)})"]
        if rule == "creating":
            words.append(arguments[-1])
        if rule != "local":
            lines.append(f"{rule.upper()}({', '.join(words)})\n")
    return "".join(lines)
