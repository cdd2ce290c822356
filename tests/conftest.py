"""What several kinds of tests share: one Spark session, the place of the public bills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKOUT = Path(__file__).parents[1]

# A test JVM lives for minutes: the second compiler would cost more than it saves.
FAST_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Nor are a few rows worth a class of their own for each query: compiling it took half of a build of the marts.
# Comet's plans are the same either way. What has to run as in production takes the fixture `compiled`.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, or of each of its workers: ours, with Delta and Comet, on two cores."""
    from weighbridge.wiring import Settings, build_session, spark_conf

    settings = Settings.from_environment({"WEIGHBRIDGE_SPARK_MASTER": "local[2]"})
    flags = spark_conf(settings)["spark.driver.extraJavaOptions"] + " " + FAST_JVM
    session = build_session(settings, {"spark.driver.extraJavaOptions": flags, **INTERPRETED})
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Within, Spark compiles its queries, as it does in production."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def bills() -> Path:
    """The folder of public sample bills beside the checkout; the test is skipped where it is absent."""
    folder = CHECKOUT.parent / "shared" / "bills"
    if not folder.is_dir():
        pytest.skip("the public sample bills are not beside the checkout (../shared/bills)")
    return folder
