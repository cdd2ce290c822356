#!/usr/bin/env bash
# The nightly job on sample bills: a delivery lands, is proven, attributed, published and asked about; then a second one.
set -euo pipefail
cd "$(dirname "$0")/../.."
demo=$PWD/.demo
weighbridge=$PWD/.venv/bin/weighbridge
rows=${WEIGHBRIDGE_DEMO_ROWS:-20000}
rm -rf "$demo"
mkdir -p "$demo/policy" "$demo/bills/aws-main"
export WEIGHBRIDGE_LAKE=$demo/lake WEIGHBRIDGE_POLICY=$demo/policy
cp jobs/weighbridge/policy/*.yaml jobs/weighbridge/policy/*.csv "$demo/policy/"
cat >"$demo/policy/sources.yaml" <<YAML
sources:
  - name: aws-main
    provider: AWS
    payer_account: "100000000001"
    format: cur-2.0
    landing: $demo/bills/aws-main
    late_after_hours: 0 # an invented bill of a past month is not late
YAML

step() { printf '\n== %s\n' "$*" >&2; }

step "1. A cloud delivers a month's bill (invented): $rows rows in three files with a manifest"
"$weighbridge" sample-bill --format cur2 --rows "$rows" --period 2026-10 --seed 7 --out "$demo/bills/aws-main"
step "2. The night: prove it whole, attribute it, publish it, build and test the marts"
"$weighbridge" night --run demo/first
step "3. The same money in every layer, to the last digit"
"$weighbridge" totals --source aws-main --period 2026-10
step "4. Who pays"
"$weighbridge" query who_spends_most --param period=2026-10
step "5. A second delivery of the same month: late rows, corrections, other tags; it replaces the first"
"$weighbridge" sample-bill --format cur2 --rows "$rows" --period 2026-10 --seed 7 --again --out "$demo/bills/aws-main"
"$weighbridge" night --run demo/second
"$weighbridge" totals --source aws-main --period 2026-10
step "6. What nobody pays for yet, and why"
"$weighbridge" query unattributed_and_why --param period=2026-10
step "Done. To look at next:"
cat >&2 <<TEXT
   export WEIGHBRIDGE_LAKE=$demo/lake WEIGHBRIDGE_POLICY=$demo/policy
   .venv/bin/weighbridge query --list                    every finance question
   .venv/bin/weighbridge query cost_per_model_version_per_region --param period=2026-10
   $demo/policy/business_lines.csv     change who pays, run 'weighbridge night' again
TEXT
