"""What finance asks: queries on the lake, and its marts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weighbridge.cli import Answer, command, say, to_json
from weighbridge.errors import Refused

if TYPE_CHECKING:
    from weighbridge.adapters.answers import Answered
    from weighbridge.finance.questions import Question

FORMATS = ("table", "csv", "xlsx", "json")


@command(
    "query", example="weighbridge query who_spends_most --param period=2026-10 --format xlsx --out bill.xlsx"
)
@click.argument("question", required=False)
@click.option("--list", "show_list", is_flag=True, help="Every question in words, with its parameters.")
@click.option("--param", "param", multiple=True, help="A parameter as name=value; once for each.")
@click.option("--as-of", help="A date (its end, UTC) or a delivery: everything as that night left it.")
@click.option("--format", "format", default="table", show_default=True, help=", ".join(FORMATS) + ".")
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file; xlsx needs one.")
def query(
    question: str | None = None,
    show_list: bool = False,
    param: tuple[str, ...] = (),
    as_of: str | None = None,
    format: str = "table",
    out: Path | str | None = None,
) -> Answer:
    """Answer a finance question from the lake, now or as it stood, as a table, CSV, XLSX or JSON."""
    from weighbridge import wiring
    from weighbridge.finance.questions import described, find, given_parameters, questions

    folder = wiring.share() / "sql" / "queries"
    if show_list or question is None:
        known = questions(folder)
        return Answer([_question_data(one) for one in known.values()], described(known))
    if format not in FORMATS:
        raise Refused(f"--format {format}: it can be {', '.join(FORMATS)}")
    if format == "xlsx" and out is None:
        raise Refused("--format xlsx needs --out FILE: a workbook is not for the screen")
    asked = find(folder, question)
    bound = asked.bind(given_parameters(param))
    settings = wiring.Settings.from_environment()
    lake_root = settings.lake_root()
    from weighbridge.adapters.answers import ask

    answered = ask(wiring.build_session(settings), lake_root, asked, bound, as_of)
    if answered.night is not None:
        say(f"as it stood after delivery {answered.night.delivery}, {answered.night.recorded_at.isoformat()}")
    return _handed_over(asked, answered, format, Path(out) if out else None)


def _question_data(question: Question) -> dict[str, Any]:
    parameters = [
        {"name": one.name, "type": one.type, "default": one.default, "meaning": one.says}
        for one in question.parameters
    ]
    return {"name": question.name, "question": question.asks, "parameters": parameters}


def _handed_over(question: Question, answered: Answered, format: str, out: Path | None) -> Answer:
    from weighbridge.finance.export import to_csv, to_json_data, to_text, to_xlsx

    night, table = answered.night, answered.table
    data: dict[str, Any] = {"query": question.name, "question": question.asks, "as_of": None}
    if night is not None:
        data["as_of"] = {
            "delivery": night.delivery,
            "recorded_at": night.recorded_at,
            "versions": night.versions,
        }
    data["rows"] = to_json_data(table)
    if format == "xlsx":
        content = to_xlsx(table, question.name)
    elif format == "json":
        content = (to_json(data) + "\n").encode()
    else:
        content = (to_csv(table) if format == "csv" else to_text(table)).encode()
    if out is None:
        return Answer(data, content.decode())
    _write_private(out, content)
    return Answer(data | {"file": str(out)}, f"{out}: {len(table.rows)} rows")


def _write_private(out: Path, content: bytes) -> None:
    """The file, whole or not at all, for its owner's eyes: a bill is confidential."""
    import os
    import tempfile

    if not out.parent.is_dir():
        raise Refused(f"--out {out}: there is no folder {out.parent}")
    descriptor, unfinished = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(unfinished, out)
    except OSError:
        Path(unfinished).unlink(missing_ok=True)
        raise


@command("marts", example="weighbridge marts --source aws-main --period 2026-10")
@click.option("--source", help="Only this source.")
@click.option("--period", help="Only this month of the bill, YYYY-MM.")
@click.option(
    "--docs", type=click.Path(path_type=Path), help="Also write dbt's page about them to this folder."
)
def marts(source: str | None = None, period: str | None = None, docs: Path | str | None = None) -> Answer:
    """Build and test the marts from daily_costs outside a night: all of them, or some periods."""
    import getpass

    from weighbridge import wiring
    from weighbridge.adapters.lease import hold
    from weighbridge.adapters.marts import document_marts, highest_lease, periods_of, refresh_marts

    settings = wiring.Settings.from_environment()
    lake_root = settings.lake_root()
    spark = wiring.build_session(settings)
    project = wiring.share()
    periods = periods_of(spark, lake_root, source, period)
    run = f"marts-{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    known = highest_lease(spark, lake_root)
    with hold(lake_root, settings, run, getpass.getuser(), at_least=known) as lease:
        say("building " + ("all marts" if periods is None else f"the marts of {len(periods)} periods"))
        metadata = to_json({"run": run, "deliveries": []})
        result = refresh_marts(spark, lake_root, project, periods, metadata, lease.counter)
    if not result.ok:
        raise Refused("the marts are as they were before, because: " + "; ".join(result.failures))
    page = document_marts(spark, lake_root, project, Path(docs)) if docs else None
    data = {"run": run, "periods": periods, "seconds": round(result.seconds), "docs": page and str(page)}
    return Answer(
        data, f"marts built and tested in {result.seconds:.0f} s" + (f"; see {page}" if page else "")
    )
