"""What DAG files share: defaults, forms, one Spark task per command, assets, and telling a person."""

from __future__ import annotations

import dataclasses
import html
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (  # type: ignore[attr-defined]  # not in its stub
    Asset,
    BaseHook,
    BaseNotifier,
    BaseOperator,
    DeadlineAlert,
    DeadlineReference,
    Param,
    SyncCallback,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from weighbridge import cli
from weighbridge.adapters.files import open_store
from weighbridge.adapters.runs import read_run, run_mark
from weighbridge.billing.runs import Notice, RunRecord, notice, verdict
from weighbridge.errors import Refused, WeighbridgeError
from weighbridge.ports import FileStore
from weighbridge.tables import CHARGES, DAILY_COSTS, MARTS
from weighbridge.wiring import Settings, load_policy, share, spark_conf

# One slot: two nights at once would only wait for each other's lease. Made by `airflow pools set spark 1`.
SPARK_POOL = "spark"

RUN = "{{ dag.dag_id }}/{{ run_id }}"

# The day whose bills a nightly run is named after; a run that somebody started has none.
DAY = "{{ data_interval_start.strftime('%Y-%m-%d') if data_interval_start is defined else '' }}"

LAKE_ASSETS = tuple(Asset(f"weighbridge://lake/{name}") for name in (CHARGES.name, DAILY_COSTS.name, *MARTS))

SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)

# `$` alone would let a line end through at the end of the text.
END = r"$(?!\n)"

FORMS: dict[str, dict[str, Any]] = {
    "attribute_costs": {
        "source": {
            "pattern": rf"^[a-z0-9][a-z0-9_-]{{0,63}}{END}",
            "title": "Source",
            "description": "Name of a source in policy/sources.yaml. Leave both empty for a normal night.",
        },
        "period": {
            "pattern": rf"^20[0-9]{{2}}-(0[1-9]|1[0-2]){END}",
            "title": "Billing period",
            "description": "YYYY-MM: its current delivery is read again from the archive.",
        },
    }
}


def defaults(owner: str, *, late_after_h: float) -> dict[str, Any]:
    """What every DAG has: one run at a time, none for the past, an alert for one that takes long."""
    return {
        "catchup": False,
        "max_active_runs": 1,
        "default_args": {"owner": owner},
        "deadline": DeadlineAlert(
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=timedelta(hours=late_after_h),
            callback=SyncCallback(Tell, kwargs={"what": "late"}),
        ),
    }


def form(name: str) -> dict[str, Param]:
    """The fields of a DAG's trigger form: optional text held to a pattern. The command knows the names."""
    return {field: Param(None, type=["null", "string"], **rules) for field, rules in FORMS[name].items()}


def spark_step(command: str, **arguments: str) -> SparkStep:
    """A task that runs one weighbridge command by spark-submit, without arguments that render empty."""
    return SparkStep(task_id=command.replace("-", "_"), command=command, arguments=arguments)


def announce(run: str) -> BaseOperator:
    """A task that tells asset consumers what a run published, also a run that refused something else.

    It is a teardown: it runs whatever became of the run's other tasks, and does not decide the run's colour.
    """
    return Announce(task_id="announce", run=run, outlets=list(LAKE_ASSETS)).as_teardown()


def check_form(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuses a form with fields that the DAG does not have, or with only one of source and period."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Refused(f"the form has no field {', '.join(unknown)}; it has {', '.join(known) or 'none'}")
    if bool(given.get("source")) != bool(given.get("period")):
        raise Refused(
            "give both source and period to read a past period again, or neither for a normal night"
        )


class SparkStep(SparkSubmitOperator):  # type: ignore[misc]  # Airflow is untyped here
    """One weighbridge command as a Spark application; its outcome comes from the run record in the lake.

    A refusal fails at once, naming the reasons; what may pass by itself is tried again. XCom `outcome` holds
    the run, its outcome and how many deliveries it published and refused.
    """

    template_fields = ("arguments",)

    def __init__(self, *, command: str, arguments: Mapping[str, str], **kwargs: Any) -> None:
        """A task for this command; what Spark needs is read when it runs, not when the DAG is parsed."""
        super().__init__(
            conn_id="spark_default",
            name=f"weighbridge-{command}",
            pool=SPARK_POOL,
            retries=2,
            retry_delay=timedelta(minutes=5),
            retry_exponential_backoff=3,  # 5 and 15 minutes
            max_retry_delay=timedelta(hours=1),
            execution_timeout=timedelta(hours=6),
            on_failure_callback=Tell("failed"),
            on_success_callback=Tell("done"),
            **kwargs,
        )
        self.command = command
        self.arguments = arguments

    def execute(self, context: Any) -> None:
        """Runs the command to its end. A refusal raises AirflowFailException, else AirflowException."""
        arguments = {name: value for name, value in self.arguments.items() if value}
        line = cli.shell_line(self.command, arguments)
        self.log.info(line)
        try:
            check_form(context["dag_run"].conf or {}, list(self.dag.params))
            settings = self._prepare(shlex.split(line)[1:])
            if arguments.get("source"):
                load_policy(settings).source(arguments["source"])
            lake = open_store(settings.lake_root(), settings)
            before = run_mark(lake, self.arguments["run"])
        except Refused as error:
            raise AirflowFailException(str(error)) from error
        crash = self._submit(context)
        record = self._record(lake, before)
        self._conclude(context, record, crash)

    def _prepare(self, words: list[str]) -> Settings:
        master = self._master()
        settings = dataclasses.replace(Settings.from_environment(), spark_master=master)
        self._hook = None
        self.application = str(share() / "jobs" / "run.py")
        self.application_args = words
        self.conf = spark_conf(settings, app_name=self.name)
        secret = sorted(key for key in self.conf if SECRET.search(key))
        if secret:
            raise Refused(f"{', '.join(secret)} would stand on a command line: give it by the environment")
        # The spark-submit of this Python's own PySpark; the driver and its workers use this Python too.
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.env_vars = {"PYSPARK_PYTHON": sys.executable, "WEIGHBRIDGE_SPARK_MASTER": master}
        if master.startswith("local"):
            self.env_vars["SPARK_LOCAL_IP"] = "127.0.0.1"
        return settings

    def _master(self) -> str:
        # The operator takes a missing or mistyped connection for YARN, in silence.
        way_out = f"""set AIRFLOW_CONN_{self._conn_id.upper()}='{{"conn_type":"spark","host":"local[*]"}}'"""
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException as error:
            raise Refused(f"there is no connection '{self._conn_id}': {way_out}") from error
        if not connection.host:
            raise Refused(f"the connection '{self._conn_id}' names no host: {way_out}")
        return str(self._get_hook()._connection["master"])

    def _submit(self, context: Any) -> AirflowException | None:
        try:
            super().execute(context)
        except AirflowException as crash:
            return crash
        return None

    def _record(self, lake: FileStore, before: str | None) -> RunRecord | None:
        run = self.arguments["run"]
        return None if run_mark(lake, run) == before else read_run(lake, run)

    def _conclude(self, context: Any, record: RunRecord | None, crash: AirflowException | None) -> None:
        process = self._hook._submit_sp if self._hook else None
        exit_code = process.returncode if process else None
        found = verdict(exit_code, record)
        context["ti"].xcom_push(
            key="outcome",
            value={
                "run": self.arguments["run"],
                "outcome": record.outcome if record else found,
                "published": len(record.published) if record else 0,
                "refused": len(record.refused) if record else 0,
            },
        )
        for text in record.lines() if record else []:
            self.log.info(text)
        if found == "done":
            return
        reasons = "; ".join(record.reasons()) if record else ""
        if found == "refused":
            raise AirflowFailException(
                f"{reasons or 'refused before it could say why in the lake: see the lines above'}. "
                "Running it again cannot help: replace what was refused, or 'weighbridge dismiss' it"
            ) from crash
        state = f"a run record that says '{record.outcome}'" if record else "no run record"
        raise AirflowException(
            f"ended with exit code {exit_code} and {state}: {reasons or 'see the lines above'}"
        ) from crash


class Announce(BaseOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Asset events for what a run published, with its periods; skipped where it published nothing."""

    template_fields = ("run",)

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        """A task for this run, as the run record names it."""
        super().__init__(
            retries=3, retry_delay=timedelta(minutes=1), on_failure_callback=Tell("failed"), **kwargs
        )
        self.run = run

    def execute(self, context: Any) -> None:
        """Puts run and periods on one event an asset."""
        record = find_record(self.run)
        if record is None or not record.is_finished or not record.published:
            raise AirflowSkipException(f"{self.run} published nothing")
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {"run": self.run, "periods": record.published_periods()}


def find_record(run: str) -> RunRecord | None:
    """What a run wrote into the lake of this environment, or None."""
    settings = Settings.from_environment()
    return read_run(open_store(settings.lake_root(), settings), run)


class Tell(BaseNotifier):  # type: ignore[misc]  # Airflow is untyped here
    """Tells a person by e-mail and webhook, as WEIGHBRIDGE_NOTIFY_EMAIL and …_WEBHOOK_CONN say."""

    def __init__(self, what: Literal["late", "failed", "done"]) -> None:
        """A notifier for one kind of news; settings are read when there is any."""
        super().__init__()
        self.what = what

    def notify(self, context: Any) -> None:
        """Sends the run's news over every channel that is set; one that fails does not stop the other."""
        run, link = _run_and_link(context)
        record, error = None, str(context.get("exception") or "")
        try:
            record = find_record(run)
        except WeighbridgeError as unreadable:
            error = error or str(unreadable)
        news = notice(self.what, run, record, link, error)
        if news is None:
            return
        settings = Settings.from_environment()
        channels = [
            *([_by_email] if settings.notify_email else []),
            *([_by_webhook] if settings.notify_webhook_conn else []),
        ]
        if not channels:
            self.log.warning(
                "nobody is told that %s: set WEIGHBRIDGE_NOTIFY_EMAIL or …_WEBHOOK_CONN", news.subject
            )
        problems = []
        for send in channels:
            try:
                send(news, settings, context)
            except Exception as problem:  # whatever a mail or web server does, the other channel is tried
                problems.append(f"{send.__name__[4:]}: {problem}")
        if problems:
            raise AirflowException(f"'{news.subject}' was not told by {'; '.join(problems)}")


def _run_and_link(context: Mapping[str, Any]) -> tuple[str, str]:
    dag_run = context["dag_run"]
    if isinstance(dag_run, Mapping):  # a deadline's context is the API's own document, without a task
        return f"{dag_run['dag_id']}/{dag_run['dag_run_id']}", ""
    return f"{dag_run.dag_id}/{dag_run.run_id}", context["ti"].log_url


def _by_email(news: Notice, settings: Settings, context: Any) -> None:
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    # Called without rendering: what stands in a bill must never be taken for a template or for HTML.
    SmtpNotifier(
        to=[address.strip() for address in settings.notify_email.split(",")],
        subject=news.subject,
        html_content=f"<pre>{html.escape(chr(10).join([*news.what, '', news.link]))}</pre>",
    ).notify(context)


def _by_webhook(news: Notice, settings: Settings, context: Any) -> None:
    from airflow.providers.http.notifications.http import HttpNotifier

    HttpNotifier(
        http_conn_id=settings.notify_webhook_conn,
        json=dataclasses.asdict(news),
        extra_options={"timeout": 30},
    ).notify(context)
