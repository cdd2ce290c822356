"""Airflow on this machine, for trying and testing: api-server, scheduler, dag-processor and triggerer.

Everything listens on 127.0.0.1. The login is Airflow's simple one, which is for development only.
Run as a program it starts the four, prints address and login, and stops all of them on Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

CHECKOUT = Path(__file__).resolve().parents[2]
PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")
USER = "admin"

# Every process of a stack carries this variable with the stack's own value, Spark's JVM too.
MARK = "WEIGHBRIDGE_AIRFLOW_STACK"


class DidNotStart(RuntimeError):
    """A part ended or did not answer in time; the message ends with its log."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def is_free(port: int) -> bool:
    """True when the port can be listened on at 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


@dataclass
class AirflowStack:
    """Four processes of one Airflow, with a home, a database and a password of its own."""

    home: Path
    dags: Path
    env: Mapping[str, str] = field(repr=False)
    port: int
    master: str = "local[2]"
    folder: Path | None = None
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12), repr=False)
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)
    _token: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """Where people and programs reach it."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What every part runs with: the caller's environment and this Airflow's settings."""
        worker_logs, trigger_logs = self._log_ports
        settings = {
            "AIRFLOW_HOME": str(self.home),
            MARK: self.mark,
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.address,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": self._jwt_secret,
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": self.master}),
            "GX_ANALYTICS_ENABLED": "false",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        path = os.pathsep.join([str(Path(sys.executable).parent), self.env.get("PATH", "")])
        return {**self.env, **settings, "PATH": path}

    def __post_init__(self) -> None:
        """Chooses what must be the same for all four parts."""
        self.home = self.home.resolve()
        self._jwt_secret = secrets.token_hex(32)
        self._log_ports = free_ports(2)

    def prepare(self) -> None:
        """Makes home, password file, database and the pool of one Spark slot; again is fine."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.home.chmod(0o700)
        passwords = self.home / "passwords.json"
        passwords.unlink(missing_ok=True)
        with open(os.open(passwords, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({USER: self.password}, file)
        self._airflow("db", "migrate")
        self._airflow("pools", "set", "spark", "1", "One Spark application at a time")

    def start(self, within_s: float) -> None:
        """Starts the four parts and returns when all are healthy. Raises DidNotStart with a log."""
        for part in PARTS:
            with self._log(part).open("ab") as log:
                self.processes[part] = subprocess.Popen(
                    [sys.executable, "-m", "airflow", part],
                    env=self.environment(),
                    cwd=self.folder or self.home,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        until = time.monotonic() + within_s
        while not self._is_healthy():
            for part, process in self.processes.items():
                if process.poll() is not None:
                    raise DidNotStart(f"{part} ended with {process.returncode}\n{self.tail(part)}")
            if time.monotonic() > until:
                raise DidNotStart(f"not healthy within {within_s:.0f} s\n{self.tail('api-server')}")
            time.sleep(0.5)

    def stop(self, within_s: float = 4) -> list[int]:
        """Ends everything that this stack started, also Spark; returns the pids that had to be killed."""
        # The api-server goes last: the others report to it. A scheduler waits for its tasks until the
        # second signal, and a triggerer without work may take ten seconds to notice: it is not waited for.
        others = [part for part in self.processes if part != "api-server"]
        for parts in (others, list(self.processes)):
            processes = [self.processes[part] for part in parts]
            for process in processes:
                if process.poll() is None:
                    process.terminate()
            until = time.monotonic() + within_s
            while any(process.poll() is None for process in processes) and time.monotonic() < until:
                time.sleep(0.1)
        killed = [process.pid for process in self.alive()]
        for _ in range(100):
            for process in self.alive():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            for child in self.processes.values():
                child.poll()
            if not self.alive():
                return killed
            time.sleep(0.1)
        raise RuntimeError(f"could not be ended: {[process.pid for process in self.alive()]}")

    def alive(self) -> list[psutil.Process]:
        """Processes of this stack that still run, found by session and by mark, so that none hides."""
        sessions = {process.pid for process in self.processes.values()}
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                ours = os.getsid(process.pid) in sessions
                if ours or process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer of the REST API. Raises urllib's HTTPError where it refuses."""
        if not self._token:
            login = {"username": USER, "password": self.password}
            self._token = self._request("POST", "/auth/token", login)["access_token"]
        return self._request(method, path, body)

    def tail(self, part: str, lines: int = 40) -> str:
        """The end of a part's log."""
        log = self._log(part)
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"content-type": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def _is_healthy(self) -> bool:
        try:
            parts = self._request("GET", "/api/v2/monitor/health")
        except (OSError, ValueError):
            return False
        return all(part.get("status") == "healthy" for part in parts.values() if part)

    def _airflow(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *words],
            env=self.environment(),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode:
            raise DidNotStart(f"airflow {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _log(self, part: str) -> Path:
        return self.home / f"{part}.log"


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal all end the block by KeyboardInterrupt."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def lake_and_policy(env: Mapping[str, str]) -> dict[str, str]:
    """The lake and policy that the person named, else the demo's. Exits with the way out where neither is."""
    demo = CHECKOUT / ".demo"
    found = {
        "WEIGHBRIDGE_LAKE": env.get("WEIGHBRIDGE_LAKE") or str(demo / "lake"),
        "WEIGHBRIDGE_POLICY": env.get("WEIGHBRIDGE_POLICY") or str(demo / "policy"),
    }
    policy = found["WEIGHBRIDGE_POLICY"]
    if "://" not in policy and not Path(policy).is_dir():
        sys.exit(
            f"there is no policy in {policy}: run 'make demo' first, or name your own by "
            "WEIGHBRIDGE_LAKE and WEIGHBRIDGE_POLICY"
        )
    return {name: place if "://" in place else str(Path(place).resolve()) for name, place in found.items()}


def main() -> None:
    """Starts Airflow for a person and stays until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--port", type=int, default=8080, help="where the pages are (default 8080, or a free one)"
    )
    parser.add_argument("--home", type=Path, default=CHECKOUT / ".airflow", help="Airflow's own folder")
    options = parser.parse_args()
    env = {**os.environ, **lake_and_policy(os.environ)}
    port = options.port if is_free(options.port) else free_ports(1)[0]
    stack = AirflowStack(
        home=options.home,
        dags=CHECKOUT / "dags",
        env=env,
        port=port,
        folder=CHECKOUT,  # a relative landing place in the policy means what it means for `make demo`
        master=env.get("WEIGHBRIDGE_SPARK_MASTER", "local[*]"),
    )
    with stopped_by_signals():
        try:
            print("preparing Airflow's database …", flush=True)
            stack.prepare()
            print("starting api-server, scheduler, dag-processor and triggerer …", flush=True)
            stack.start(within_s=300)
            print(f"\n  Airflow    {stack.address}\n  login      {USER} / {stack.password}")
            print(f"  lake       {env['WEIGHBRIDGE_LAKE']}\n  policy     {env['WEIGHBRIDGE_POLICY']}")
            print(
                f"  logs       {stack.home}\n\nSwitch 'attribute_costs' on to run a night. Ctrl-C stops all.",
                flush=True,
            )
            while all(process.poll() is None for process in stack.processes.values()):
                time.sleep(1)
            ended = [part for part, process in stack.processes.items() if process.poll() is not None]
            print(f"{', '.join(ended)} ended by itself:\n{stack.tail(ended[0])}", file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            print("\nstopping …", flush=True)
        except DidNotStart as error:
            sys.exit(f"Airflow did not start: {error}")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            stack.stop()
            print("all of Airflow's processes have ended", flush=True)


if __name__ == "__main__":
    main()
