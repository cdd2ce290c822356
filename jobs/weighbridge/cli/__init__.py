"""The one interface: a command, a DAG task and a function of the same name do the same thing."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import click

from weighbridge import __version__
from weighbridge.errors import WeighbridgeError

# Where each command lives. A module is imported only when one of its commands is called,
# so that neither `--help` nor parsing a DAG loads Spark.
COMMANDS: dict[str, str] = {}


def register(module: str, *names: str) -> None:
    """Names the commands of one module of this package."""
    COMMANDS.update(dict.fromkeys(names, module))


register("setup", "doctor", "jars")
register("bills", "inspect")
register("samples", "sample-bill")
register("nights", "night", "ingest-file", "dismiss", "reattribute", "totals")
register("finance", "query", "marts")


@dataclass(frozen=True)
class Answer:
    """What a command found: `data` for `--json`, `text` for a person, and its exit code."""

    data: Any
    text: str
    exit_code: int = 0


def to_json(value: Any) -> str:
    """One JSON document; money is decimal text, times are ISO 8601 with Z. A float is an error: it is inexact."""

    def plain(item: Any) -> Any:
        if item is None or isinstance(item, (str, int)):
            return item
        if isinstance(item, Mapping):
            return {str(key): plain(value) for key, value in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(value) for value in item]
        if isinstance(item, Decimal):
            return format(item, "f")
        if isinstance(item, datetime):
            return item.isoformat().replace("+00:00", "Z")
        if isinstance(item, date):
            return item.isoformat()
        raise TypeError(f"no JSON form for {type(item).__name__}")

    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def say(text: str) -> None:
    """One line of progress for the person who watches; never on stdout."""
    click.echo(text, err=True)


@contextlib.contextmanager
def only_answers_on_stdout() -> Iterator[Callable[[str], None]]:
    """Yields a writer to the real stdout; whatever else (Spark's JVM, native code) prints goes to stderr."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    try:
        yield lambda text: _write_all(real, text)
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)


def _write_all(descriptor: int, text: str) -> None:
    left = text.encode()
    while left:
        left = left[os.write(descriptor, left) :]


def command(name: str, *, example: str) -> Callable[[Callable[..., Answer]], click.Command]:
    """Makes a function returning an Answer into a command with `--json`, an example and our exit codes."""

    def make(function: Callable[..., Answer]) -> click.Command:
        @functools.wraps(function)
        def call(**arguments: Any) -> None:
            as_json = arguments.pop("as_json")
            with only_answers_on_stdout() as answer_on_stdout:
                try:
                    answer = function(**arguments)
                except Exception as error:  # whatever happens, who asked for JSON gets one document
                    if as_json:
                        problem = {"error": str(error), "kind": type(error).__name__}
                        answer_on_stdout(to_json(problem) + "\n")
                    if not isinstance(error, WeighbridgeError):
                        raise
                    say(f"{name}: {error}")
                    sys.exit(error.exit_code)
                answer_on_stdout((to_json(answer.data) if as_json else answer.text).rstrip("\n") + "\n")
            sys.exit(answer.exit_code)

        sentence = (function.__doc__ or "").strip()
        with_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
        made = click.command(name, help=f"{sentence}\n\nExample: {example}")(with_json(call))
        made.short_help = sentence.split("\n")[0]
        made.callback.__wrapped__ = function  # type: ignore[union-attr]  # `run` calls it without the shell
        return made

    return make


class Commands(click.Group):
    """Finds a command by name without importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command's name, sorted."""
        return sorted(COMMANDS)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; one that was called wrongly also answers with a document where JSON was asked for."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if "--json" in sys.argv:
                click.echo(to_json({"error": error.format_message(), "kind": "UsageError"}))
            raise

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now; None for an unknown name."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        attribute = cmd_name.replace("-", "_")
        found: click.Command = getattr(importlib.import_module(f"weighbridge.cli.{module}"), attribute)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Weighs every model before it goes on the road; brings every dollar to the line that spent it."""


def run(name: str, **arguments: Any) -> Answer:
    """What the shell command does, as a call: an Answer, or one of our errors raised."""
    found = main.get_command(click.Context(main), name)
    if found is None:
        raise LookupError(f"no command {name}")
    say(shell_line(name, arguments))
    function: Callable[..., Answer] = found.callback.__wrapped__  # type: ignore[union-attr]  # `command` set it
    return function(**arguments)


def shell_line(name: str, arguments: Mapping[str, Any]) -> str:
    """The shell command that repeats a call, quoted."""
    import shlex

    words: list[str] = ["weighbridge", name]
    for key, value in arguments.items():
        flag = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            words += [flag] if one is True else [flag, str(one)]
    return shlex.join(words)
