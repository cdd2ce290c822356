"""Settings from the environment become a Spark session and adapters: the only place that chooses."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weighbridge.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weighbridge.adapters.lake import DeltaLake
    from weighbridge.policies import Policy
    from weighbridge.ports import FileStore

DATABASE = "weighbridge"
COMET_JAR = "comet-spark-spark4.1_2.13"


@dataclass(frozen=True)
class Settings:
    """What an environment decides. Every field is one variable, `WEIGHBRIDGE_` before its upper-case name."""

    lake: str = ""
    policy: str = ""
    spark_master: str = "local[*]"
    spark_driver_memory: str = "2g"
    comet: bool = True
    catalog: str = "none"
    jars: str = ""
    s3_endpoint: str = ""
    s3_region: str = "us-east-1"
    archive: bool = True
    notify_email: str = ""
    notify_webhook_conn: str = ""

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Settings of this environment; an unreadable or unknown value is refused by name."""

        def switch(name: str, default: bool) -> bool:
            text = env.get(name, "").strip().lower()
            if text in ("", "on", "off"):
                return default if text == "" else text == "on"
            raise Refused(f"{name} is '{text}'; it can be 'on' or 'off'")

        catalog = env.get("WEIGHBRIDGE_CATALOG", "none")
        if catalog not in ("none", "hive"):
            raise Refused(
                f"WEIGHBRIDGE_CATALOG is '{catalog}'; it can be 'none' (the lake's own places) or 'hive' "
                "(a Hive or Glue metastore named in Spark's own configuration)"
            )
        return cls(
            lake=env.get("WEIGHBRIDGE_LAKE", "").rstrip("/"),
            policy=env.get("WEIGHBRIDGE_POLICY", "").rstrip("/"),
            spark_master=env.get("WEIGHBRIDGE_SPARK_MASTER", cls.spark_master),
            spark_driver_memory=env.get("WEIGHBRIDGE_SPARK_DRIVER_MEMORY", cls.spark_driver_memory),
            comet=switch("WEIGHBRIDGE_COMET", cls.comet),
            catalog=catalog,
            jars=env.get("WEIGHBRIDGE_JARS", "") or str(Path(sys.prefix) / "share" / "weighbridge" / "jars"),
            s3_endpoint=env.get("WEIGHBRIDGE_S3_ENDPOINT", ""),
            s3_region=env.get("WEIGHBRIDGE_S3_REGION", "") or env.get("AWS_REGION", "") or cls.s3_region,
            archive=switch("WEIGHBRIDGE_ARCHIVE", cls.archive),
            notify_email=env.get("WEIGHBRIDGE_NOTIFY_EMAIL", ""),
            notify_webhook_conn=env.get("WEIGHBRIDGE_NOTIFY_WEBHOOK_CONN", ""),
        )

    def lake_root(self) -> str:
        """Where the lake is: an absolute folder or `s3://bucket/prefix`. Refused when not set."""
        if not self.lake:
            raise Refused(
                "WEIGHBRIDGE_LAKE is not set: name the lake's folder or s3:// prefix, "
                "for example WEIGHBRIDGE_LAKE=./lake"
            )
        return self.lake if is_s3(self.lake) else str(Path(self.lake).resolve())


def is_s3(place: str) -> bool:
    """True for `s3://` and `s3a://` places."""
    return urlsplit(place).scheme in ("s3", "s3a")


def share() -> Path:
    """The folder that holds dags/, models/, sql/ and dbt_project.yml: the checkout, or the wheel's copy."""
    packaged = Path(__file__).parent / "share"
    return packaged if packaged.is_dir() else Path(__file__).parents[2]


def jar_paths(settings: Settings) -> list[Path]:
    """The JARs of `infra/spark/jars.lock` in the JAR folder; a missing one is refused with the way out."""
    wanted = [
        "{1}-{2}.jar".format(*line.split()[0].split(":"))
        for line in (share() / "infra/spark/jars.lock").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    folder = Path(settings.jars)
    missing = [name for name in wanted if not (folder / name).is_file()]
    if missing:
        raise Refused(f"{len(missing)} JARs are missing in {folder} ({missing[0]} …): run 'weighbridge jars'")
    return [folder / name for name in wanted]


def class_archive(settings: Settings) -> Path:
    """Where `make setup` puts the classes of a session with Comet: a JVM that finds them starts sooner."""
    from importlib.metadata import version

    return Path(settings.jars) / f"classes-{version('pyspark')}.jsa"


def spark_conf(settings: Settings, app_name: str = "weighbridge") -> dict[str, str]:
    """The whole Spark configuration, as plain text pairs: for a session built here or for spark-submit.

    Few shuffle partitions on one machine (AQE joins small ones anyway); a cluster's master keeps Spark's own.
    """
    jars = jar_paths(settings)
    # Comet's JAR goes first: its plugin has to be seen before Delta's classes are.
    jars.sort(key=lambda jar: not jar.name.startswith(COMET_JAR))
    comet_jar = str(jars[0])
    local = settings.spark_master.startswith("local")
    conf = {
        "spark.app.name": app_name,
        "spark.jars": ",".join(map(str, jars if settings.comet else jars[1:])),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        "spark.ui.enabled": "false",
        # Remembering the Python line of each column makes building a plan half again as slow.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        # A day's JVM must not outlive Python by its default zone or locale.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Dfile.encoding=UTF-8",
    }
    if settings.comet:
        # Comet works on the rows; the JVM plans, which its second compiler costs more than it saves.
        conf["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1"
    archive = class_archive(settings)
    if settings.comet and archive.is_file() and " " not in str(archive):
        conf["spark.driver.extraJavaOptions"] += f" -XX:SharedArchiveFile={archive} -Xlog:cds*=off"
    if local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": settings.spark_driver_memory,
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        }
    if settings.catalog == "hive":
        conf["spark.sql.catalogImplementation"] = "hive"
    else:
        conf["spark.sql.catalogImplementation"] = "in-memory"
    if settings.comet:
        conf |= {
            "spark.driver.extraClassPath": comet_jar,
            "spark.executor.extraClassPath": comet_jar,
            "spark.plugins": "org.apache.spark.CometPlugin",
            "spark.comet.enabled": "true",
            "spark.comet.shuffle.enabled": "true",
            "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": "1g",
            "spark.comet.parquet.write.enabled": "true",
            "spark.comet.write.parquet.enabled": "true",
            "spark.comet.operator.DataWritingCommandExec.allowIncompatible": "true",
        }
    if is_s3(settings.lake) or settings.s3_endpoint:
        conf |= s3a_conf(settings)
    return conf


def s3a_conf(settings: Settings) -> dict[str, str]:
    """Hadoop's settings for `s3a://`; credentials come from the environment or the machine's role."""
    conf = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.s3a.endpoint.region": settings.s3_region,
        "spark.hadoop.fs.s3a.aws.credentials.provider": ",".join(
            [
                "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
                "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
                "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
            ]
        ),
    }
    if settings.s3_endpoint:
        conf |= {
            "spark.hadoop.fs.s3a.endpoint": settings.s3_endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(
                settings.s3_endpoint.startswith("https")
            ).lower(),
        }
    return conf


FORBIDDEN = {"spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false"}


def build_session(settings: Settings, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The one Spark session of this process. A session that would hide damaged files is refused."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark hands timestamps out in the zone of the machine, whatever the session's is.
    os.environ["TZ"] = "UTC"
    time.tzset()
    from pyspark.sql import SparkSession

    # It tells of each connection that it closes, also after everything that could be told to has gone.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf: dict[str, str | bool | int | float | None] = {**spark_conf(settings), **(extra or {})}
    builder = SparkSession.builder.config(map=conf)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # under spark-submit the master is already chosen
        builder = builder.master(settings.spark_master)
    session = builder.getOrCreate()
    for key, wanted in FORBIDDEN.items():
        found = session.conf.get(key, wanted) or wanted
        if found.lower() != wanted:
            session.stop()
            raise Refused(
                f"{key} is {found}: damaged bill files would be skipped in silence; set it to {wanted}"
            )
    return session


def load_policy(settings: Settings) -> Policy:
    """The policy that WEIGHBRIDGE_POLICY names, typed and checked."""
    from weighbridge.adapters.files import open_store
    from weighbridge.policies import read_policy

    if not settings.policy:
        raise Refused(
            "WEIGHBRIDGE_POLICY is not set: name a folder or s3:// prefix with sources.yaml, tags.yaml and "
            f"business_lines.csv; {Path(__file__).parent / 'policy'} is an example to copy"
        )
    store = open_store(settings.policy, settings)
    return read_policy({file.key: store.read(file.key) for file in store.list() if "/" not in file.key})


def lake_store(settings: Settings) -> FileStore:
    """The place of the lake, made where it is a folder that does not exist yet."""
    from weighbridge.adapters.files import open_store

    root = settings.lake_root()
    if not is_s3(root):
        Path(root).mkdir(parents=True, exist_ok=True)
    return open_store(root, settings)


def open_lake(settings: Settings, spark: SparkSession) -> DeltaLake:
    """The lake, its tables made where missing and known to the session."""
    from weighbridge.adapters.lake import DeltaLake

    lake = DeltaLake(spark, lake_store(settings), storage_options(settings))
    lake.open()
    return lake


def storage_options(settings: Settings) -> dict[str, str]:
    """What delta-rs needs for the lake's store; its credentials come from the environment, as Spark's do."""
    if not is_s3(settings.lake):
        return {}
    options = {"AWS_REGION": settings.s3_region, "aws_conditional_put": "etag"}
    if settings.s3_endpoint:
        options |= {
            "AWS_ENDPOINT_URL": settings.s3_endpoint,
            "AWS_ALLOW_HTTP": str(not settings.s3_endpoint.startswith("https")).lower(),
        }
    return options
