"""What spark-submit starts in place of the night: leaves the run record and the exit that a test asks for.

The environment says what to do: STAND_IN is a JSON list, one entry an attempt, each {"record": …, "exit": …};
a record of null is none, an exit of "killed" takes the JVM down as an out-of-memory killer would.
"""

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, os.environ["STAND_IN_JOBS"])

from weighbridge.adapters.files import FolderStore
from weighbridge.adapters.runs import write_run
from weighbridge.billing.runs import RunRecord

home = Path(os.environ["STAND_IN_HOME"])
attempt = len(list(home.glob("attempt-*")))
arguments = sys.argv[1:]
(home / f"attempt-{attempt}").write_text(json.dumps({"arguments": arguments, "python": sys.executable}))
plan = json.loads(os.environ["STAND_IN"])[attempt]
if plan["record"] is not None:
    run = arguments[arguments.index("--run") + 1]
    now = datetime.now(UTC).isoformat()
    empty = {"published": [], "refused": [], "warnings": [], "late": [], "versions": {}}
    record = {"run": run, "started_at": now, "finished_at": now, **empty, **plan["record"]}
    write_run(FolderStore(os.environ["WEIGHBRIDGE_LAKE"]), RunRecord.from_json(json.dumps(record)))
if plan["exit"] == "killed":
    os.kill(os.getppid(), signal.SIGKILL)
sys.exit(plan["exit"])
