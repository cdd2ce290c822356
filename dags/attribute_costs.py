"""Every night: take the bills that were delivered, prove them, attribute them, publish them.

Each run is named after the day that its data interval covers; what it reads is every delivery that is not
in the ledger yet. The trigger form reads the current delivery of one past period again, from the archive.
"""

from datetime import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable

from weighbridge.orchestration import DAY, RUN, announce, defaults, form, spark_step

with DAG(
    "attribute_costs",
    schedule=CronDataIntervalTimetable("0 2 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    params=form("attribute_costs"),
    doc_md=__doc__,
    **defaults(owner="finance-platform", late_after_h=3),
):
    night = spark_step(
        "night", run=RUN, day=DAY, source="{{ params.source or '' }}", period="{{ params.period or '' }}"
    )
    night >> announce(run=RUN)
