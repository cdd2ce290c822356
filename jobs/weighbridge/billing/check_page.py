"""The results of a run's checks as one page that needs nothing from outside itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from jinja2 import Environment

from weighbridge.billing.checking import Check
from weighbridge.billing.ledger import LedgerRow

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Checks of {{ run }}</title>
<style>
  body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c2430 }
  h1 { font-size: 1.4rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem }
  p { margin: .2rem 0; color: #55606e }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #dde2e8 }
  th { color: #55606e; font-weight: 600 } code { font-size: .85rem; overflow-wrap: anywhere }
  .name { white-space: nowrap }
  .failed td:first-child { color: #b3261e; font-weight: 600 }
  .warned td:first-child { color: #8a5a00; font-weight: 600 }
  .held td:first-child { color: #2c6e49 }
</style>
</head>
<body>
<h1>Checks of {{ run }}</h1>
<p>{{ at }} UTC. Critical: nothing of the delivery is published. Warning: it is published; somebody should look.</p>
{% for row, checks in deliveries %}
<h2>{{ row.source }} {{ row.billing_period }} &middot; delivery {{ row.delivery }}</h2>
<p>{{ checks | selectattr("success") | list | length }} of {{ checks | length }} held.</p>
<table>
<thead><tr><th>Result</th><th>What was expected</th><th>Column</th><th>Expected</th><th>Found</th></tr></thead>
<tbody>
{% for check in checks %}
<tr class="{{ 'held' if check.success else 'failed' if check.severity == 'critical' else 'warned' }}">
<td>{{ 'held' if check.success else check.severity }}</td><td>{{ check.says }}</td>
<td class="name"><code>{{ check.column_name or '' }}</code></td><td><code>{{ check.expected }}</code></td>
<td><code>{{ check.observed }}</code></td></tr>
{% endfor %}
</tbody>
</table>
{% endfor %}
</body>
</html>
"""

# What failed comes first, the critical before the warnings.
_ORDER = {(False, "critical"): 0, (False, "warning"): 1}


def check_page(run: str, at: datetime, checked: Iterable[tuple[LedgerRow, Sequence[Check]]]) -> str:
    """One HTML document; every value is escaped, no script, style or font comes from elsewhere."""
    deliveries = [
        (row, sorted(checks, key=lambda check: _ORDER.get((check.success, check.severity), 2)))
        for row, checks in checked
    ]
    template = Environment(autoescape=True, trim_blocks=True).from_string(PAGE)
    return template.render(run=run, at=f"{at:%Y-%m-%d %H:%M:%S}", deliveries=deliveries)
