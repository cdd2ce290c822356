"""Telling a person: what is said, and that it really leaves by web and by mail."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_string
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.runs import write_run
from weighbridge.billing.runs import DeliveryNote, RunRecord, notice, verdict

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
RUN = "attribute_costs/r1"
REFUSAL = DeliveryNote("aws-main", "2026-11", "d2", "part <b>2</b> of {{ 3 }} is missing")
REFUSED = RunRecord(RUN, "refused", NOW, NOW, refused=(REFUSAL,))
PUBLISHED = RunRecord(RUN, "published", NOW, NOW, published=(DeliveryNote("aws-main", "2026-11", "d1"),))


@pytest.mark.parametrize(
    ("exit_code", "record", "expected"),
    [
        (0, PUBLISHED, "done"),
        (0, RunRecord(RUN, "nothing_new", NOW, NOW), "done"),
        (None, PUBLISHED, "done"),
        (2, REFUSED, "refused"),
        (0, REFUSED, "refused"),
        (1, REFUSED, "failed"),
        (1, PUBLISHED, "failed"),
        (-9, PUBLISHED, "failed"),
        (0, RunRecord(RUN, "running", NOW), "failed"),
        (2, RunRecord(RUN, "running", NOW), "failed"),
        (1, RunRecord(RUN, "failed", NOW, NOW), "failed"),
        (2, None, "refused"),
        (0, None, "failed"),
        (1, None, "failed"),
        (-9, None, "failed"),
        (None, None, "failed"),
    ],
)
def test_the_record_leads_and_an_exit_code_alone_is_never_a_success(
    exit_code: int | None, record: RunRecord | None, expected: str
) -> None:
    assert verdict(exit_code, record) == expected


def test_a_night_as_it_should_be_is_not_worth_a_message() -> None:
    assert notice("done", RUN, PUBLISHED, "") is None


def test_a_bill_that_did_not_come_is_told_although_the_night_is_green() -> None:
    news = notice("done", RUN, RunRecord(RUN, "nothing_new", NOW, NOW, late=("aws-main: 3 days",)), "")
    assert news is not None
    assert news.what == ("late: aws-main: 3 days",)


def test_a_death_without_a_word_is_told_as_a_failure() -> None:
    news = notice("failed", RUN, RunRecord(RUN, "running", NOW), "there")
    assert news is not None
    assert (news.outcome, news.link) == ("failed", "there")
    assert news.what


def test_a_message_stays_short_whatever_a_bill_holds() -> None:
    many = tuple(DeliveryNote("aws-main", "2026-11", "d", "x" * 5000) for _ in range(200))
    news = notice("failed", RUN, RunRecord(RUN, "refused", NOW, NOW, refused=many), "")
    assert news is not None
    assert len("".join(news.what)) <= 30 * 500


class _Mailbox(socketserver.StreamRequestHandler):
    """Just enough of a mail server: greets, takes one message, says goodbye."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        in_message, message = False, b""
        for line in self.rfile:
            if in_message and line != b".\r\n":
                message += line
            elif in_message:
                self.server.mail.append(message.decode())
                in_message = False
                self.wfile.write(b"250 taken\r\n")
            elif line.upper().startswith(b"DATA"):
                in_message = True
                self.wfile.write(b"354 go on\r\n")
            elif line.upper().startswith(b"QUIT"):
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 fine\r\n")


class _Web(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.told.append(json.loads(body))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


def _serving(server: Any) -> Iterator[Any]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def mailbox() -> Iterator[Any]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox)
    server.mail = []
    yield from _serving(server)


@pytest.fixture
def web() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), _Web)
    server.told, server.answer = [], 204
    yield from _serving(server)


@pytest.fixture
def tell(
    airflow_database: None, mailbox: Any, web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A function that sends the news of one record over both channels."""
    mail = {
        "conn_type": "smtp", "host": "127.0.0.1", "port": mailbox.server_address[1],
        "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "weighbridge@example.com"},
    }  # fmt: skip
    hook = {"conn_type": "http", "schema": "http", "host": "127.0.0.1", "port": web.server_port}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(mail))
    monkeypatch.setenv("AIRFLOW_CONN_FINANCE_HOOK", json.dumps(hook))
    monkeypatch.setenv("WEIGHBRIDGE_NOTIFY_EMAIL", "finance@example.com, platform@example.com")
    monkeypatch.setenv("WEIGHBRIDGE_NOTIFY_WEBHOOK_CONN", "finance_hook")
    monkeypatch.setenv("WEIGHBRIDGE_LAKE", str(tmp_path))

    def send(what: Any, record: RunRecord | None) -> None:
        from weighbridge.orchestration import Tell

        if record:
            write_run(FolderStore(str(tmp_path)), record)
        context = {
            "dag_run": SimpleNamespace(dag_id="attribute_costs", run_id="r1"),
            "ti": SimpleNamespace(log_url="http://127.0.0.1/log"),
        }
        Tell(what).notify(context)

    return send


def test_a_refusal_goes_out_by_mail_and_web_as_plain_text(tell: Any, mailbox: Any, web: Any) -> None:
    tell("failed", REFUSED)
    reason = "refused aws-main 2026-11 (delivery d2): part <b>2</b> of {{ 3 }} is missing"
    assert web.told == [{"run": RUN, "outcome": "refused", "what": [reason], "link": "http://127.0.0.1/log"}]
    mail = message_from_string(mailbox.mail[0])
    assert mail["Subject"] == "weighbridge: attribute_costs/r1 refused"
    assert mail["To"] == "finance@example.com, platform@example.com"
    (body,) = (part for part in mail.walk() if part.get_content_type() == "text/html")
    assert "part &lt;b&gt;2&lt;/b&gt; of {{ 3 }} is missing" in body.get_payload(decode=True).decode()


def test_a_web_server_that_fails_does_not_keep_the_mail_back(tell: Any, mailbox: Any, web: Any) -> None:
    web.answer = 500
    with pytest.raises(Exception, match="was not told by webhook"):
        tell("failed", REFUSED)
    assert len(mailbox.mail) == 1


def test_a_lake_that_cannot_be_read_is_no_reason_to_be_silent(
    tell: Any, web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_LAKE", "")
    tell("failed", None)
    assert web.told[0]["outcome"] == "failed"
    assert "WEIGHBRIDGE_LAKE is not set" in web.told[0]["what"][0]


def test_a_night_without_news_sends_nothing(tell: Any, mailbox: Any, web: Any) -> None:
    tell("done", RunRecord(RUN, "nothing_new", NOW, NOW))
    assert (mailbox.mail, web.told) == ([], [])
