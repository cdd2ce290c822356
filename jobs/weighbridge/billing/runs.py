"""What a run of a night did, whether it went well, and what a person is told about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from weighbridge.errors import Refused

Outcome = Literal["running", "published", "nothing_new", "refused", "failed"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)


@dataclass(frozen=True)
class DeliveryNote:
    """One delivery of one billing period; `reason` says why it was refused. Period is None where not told."""

    source: str
    period: str | None
    delivery: str | None
    reason: str = ""


@dataclass(frozen=True)
class RunRecord:
    """What one run did. A refused run may have published others: it is red, and they are served."""

    run: str
    outcome: Outcome
    started_at: datetime
    finished_at: datetime | None = None
    published: tuple[DeliveryNote, ...] = ()
    refused: tuple[DeliveryNote, ...] = ()
    warnings: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    page: str = ""
    error: str = ""

    @property
    def is_finished(self) -> bool:
        """True when the run came to its own end; False for one that died, failed or still runs."""
        return self.outcome in ("published", "nothing_new", "refused")

    @property
    def is_degraded(self) -> bool:
        """True when a person should look although nothing was refused: warnings, or bills that are late."""
        return bool(self.warnings or self.late)

    def published_periods(self) -> list[dict[str, str | None]]:
        """The (source, period) pairs that changed, each once, in order."""
        pairs = dict.fromkeys((note.source, note.period) for note in self.published)
        return [{"source": source, "period": period} for source, period in pairs]

    def reasons(self) -> list[str]:
        """Why the run is red: one line for each refused delivery, and the error that ended it."""
        refused = [f"refused {_name(note)}: {note.reason}" for note in self.refused]
        return refused + ([f"error: {self.error}"] if self.error else [])

    def lines(self) -> list[str]:
        """The record for a person: one line for each thing that was refused, is late, warned or published."""
        return [
            *self.reasons(),
            *(f"late: {text}" for text in self.late),
            *(f"warning: {text}" for text in self.warnings),
            *(f"published {_name(note)}" for note in self.published),
            *([f"every check: {self.page}"] if self.page else []),
        ]

    def to_json(self) -> str:
        """The record as one JSON document; times are ISO 8601 in UTC."""
        return json.dumps(
            {
                "run": self.run,
                "outcome": self.outcome,
                "published": [_note_to_json(note, with_reason=False) for note in self.published],
                "refused": [_note_to_json(note, with_reason=True) for note in self.refused],
                "warnings": list(self.warnings),
                "late": list(self.late),
                "versions": dict(self.versions),
                "page": self.page,
                "error": self.error,
                "started_at": _iso(self.started_at),
                "finished_at": _iso(self.finished_at) if self.finished_at else None,
            },
            indent=2,
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> RunRecord:
        """The record in this document; unknown keys are left, a missing one is refused."""
        try:
            found: dict[str, Any] = json.loads(text)
            if found["outcome"] not in OUTCOMES:
                raise ValueError(f"outcome is {found['outcome']!r}")
            return cls(
                run=found["run"],
                outcome=found["outcome"],
                started_at=datetime.fromisoformat(found["started_at"]),
                finished_at=datetime.fromisoformat(found["finished_at"]) if found["finished_at"] else None,
                published=tuple(_note_from_json(note) for note in found["published"]),
                refused=tuple(_note_from_json(note) for note in found["refused"]),
                warnings=tuple(found["warnings"]),
                late=tuple(found["late"]),
                versions=dict(found["versions"]),
                page=found.get("page", ""),
                error=found.get("error", ""),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(
                f"this is no run record of ours ({error}): delete it and start the run again"
            ) from error


def verdict(exit_code: int | None, record: RunRecord | None) -> Literal["done", "refused", "failed"]:
    """What became of a command, by its run record and then its exit code (None where a cluster hides it).

    The record leads: only it knows whether something was refused. Exit code 2 without a record is a
    refusal before there was a lake to write to. All else may pass when asked again.
    """
    if record is None:
        return "refused" if exit_code == 2 else "failed"
    if record.outcome == "refused" and exit_code in (0, 2, None):
        return "refused"
    return "done" if record.is_finished and record.outcome != "refused" and not exit_code else "failed"


@dataclass(frozen=True)
class Notice:
    """What a person is told about a run: nothing of a bill but source, period, delivery and the reason."""

    run: str
    outcome: str
    what: tuple[str, ...]
    link: str

    @property
    def subject(self) -> str:
        """One line, for the head of an e-mail."""
        return f"weighbridge: {self.run} {self.outcome}"


def notice(what: str, run: str, record: RunRecord | None, link: str, error: str = "") -> Notice | None:
    """What to say of a run that is `late`, `failed` or `done`; None for a night that went as it should."""
    lines = record.lines() if record else []
    if what == "done":
        if record is None or not record.is_degraded:
            return None
        outcome = "published, but look at it" if record.published else "has something to look at"
    elif what == "late":
        outcome = "is late"
    else:
        # A record of an earlier attempt may say "published"; the run is red all the same.
        outcome = "refused" if record and record.outcome == "refused" else "failed"
        lines = lines or [error or "it ended without saying why: see its log"]
    return Notice(run, outcome, tuple(line[:500] for line in lines[:30]), link)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _name(note: DeliveryNote) -> str:
    return f"{note.source} {note.period or 'of unknown period'} (delivery {note.delivery or 'without a key'})"


def _note_to_json(note: DeliveryNote, *, with_reason: bool) -> dict[str, str | None]:
    plain = {"source": note.source, "period": note.period, "delivery": note.delivery}
    return plain | {"reason": note.reason} if with_reason else plain


def _note_from_json(found: Mapping[str, Any]) -> DeliveryNote:
    return DeliveryNote(found["source"], found["period"], found["delivery"], found.get("reason", ""))
