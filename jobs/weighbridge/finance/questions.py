"""One finance question per SQL file: its words, its parameters and the tables it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from weighbridge.errors import Refused
from weighbridge.tables import MARTS, TABLES

# -- :period month        month of the bill           (no default: has to be given)
# -- :source text = any   only this source            (`any` binds null)
PARAMETER = re.compile(
    r"^-- :(?P<name>[a-z_]+) +(?P<type>text|month|date|number)(?: += +(?P<default>\S+))? +(?P<says>.+)$"
)
MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
ANY = "any"
READABLE = tuple(table.name for table in TABLES) + MARTS

Bound = str | int | date | None


@dataclass(frozen=True)
class Parameter:
    """One parameter of a question; one without a default has to be given, `any` is no restriction."""

    name: str
    type: str
    default: str | None
    says: str

    def bind(self, text: str) -> Bound:
        """The value for Spark to bind. Refused where the text is not of the parameter's type."""
        if text == ANY and self.default == ANY:
            return None
        try:
            if self.type == "number":
                return int(text)
            if self.type == "date":
                return date.fromisoformat(text)
        except ValueError:
            raise Refused(f"{self.name} is '{text}'; it has to be a {self.type} ({self.says})") from None
        if self.type == "month" and not MONTH.fullmatch(text):
            raise Refused(f"{self.name} is '{text}'; write a month as 2026-10 ({self.says})")
        return text


@dataclass(frozen=True)
class Question:
    """One question: its words, its parameters in order, its SQL, and the tables and marts the SQL names."""

    name: str
    asks: str
    parameters: tuple[Parameter, ...]
    sql: str
    tables: tuple[str, ...]

    def bind(self, given: Mapping[str, str]) -> dict[str, Bound]:
        """Every parameter's value, given or default. An unknown or missing one is Refused, naming all."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise Refused(f"{self.name} has no parameter '{name}'; it knows {_listed(known)}")
        bound: dict[str, Bound] = {}
        for name, parameter in known.items():
            text = given.get(name, parameter.default)
            if text is None:
                raise Refused(
                    f"{self.name} needs --param {name}=…: {parameter.says}; it knows {_listed(known)}"
                )
            bound[name] = parameter.bind(text)
        return bound


def questions(folder: Path) -> dict[str, Question]:
    """Every question of a folder by its name, in alphabetical order."""
    return {
        path.stem: parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.sql"))
    }


def find(folder: Path, name: str) -> Question:
    """The question of this name; an unknown one is Refused with those that there are."""
    known = questions(folder)
    if name not in known:
        raise Refused(f"there is no query '{name}'; there are {_listed(known)}")
    return known[name]


def parse(name: str, text: str) -> Question:
    """A question from its file: the comment it opens with, one comment line a parameter, then SQL."""
    words: list[str] = []
    parameters: list[Parameter] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if line.startswith("-- :"):
            found = PARAMETER.match(line)
            if found is None:
                raise ValueError(f"{name}: not a parameter: {line}")
            parameters.append(Parameter(found["name"], found["type"], found["default"], found["says"]))
        elif line[2:].strip():
            words.append(line[2:].strip())
    code = re.sub(r"--.*", "", text)
    tables = tuple(table for table in READABLE if re.search(rf"\b{table}\b", code))
    return Question(name, " ".join(words), tuple(parameters), text, tables)


def given_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs as a mapping; one without `=`, or given twice, is Refused."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or name in given:
            raise Refused(f"--param {pair}: write each parameter once, as name=value")
        given[name] = value
    return given


def described(known: Mapping[str, Question]) -> str:
    """Every question in words with its parameters, for a person."""
    lines = []
    for question in known.values():
        lines += ["", question.name, f"  {question.asks}"]
        for one in question.parameters:
            default = "" if one.default is None else f" = {one.default}"
            lines.append(f"    --param {one.name}=<{one.type}>{default}  {one.says}")
    return "\n".join(lines[1:])


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"
