"""What a sample bill is made of: business lines with their spellings, and the shape of a cloud."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One business line: how people spell its tag, its team, models, tenants and share of the fleet."""

    slug: str
    spellings: tuple[str, ...]  # the first is the usual one
    team: str
    models: tuple[str, ...]
    tenants: tuple[str, ...]
    share: float


LINES = (
    Line(
        "search",
        ("search", "Search", "SEARCH "),
        "search-ranking",
        ("ranker-6", "ranker-7", "query-rewrite-2", "embedder-3"),
        ("web", "mobile", "partners"),
        0.30,
    ),
    Line(
        "ads",
        ("ads", "Ads", "advertising"),
        "ads-serving",
        ("ctr-12", "ctr-13", "bid-pacer-4"),
        ("self-serve", "agencies"),
        0.22,
    ),
    Line(
        "assistant",
        ("assistant", "support-assistant", "Support Assistant"),
        "assistant-platform",
        ("assistant-70b-int4", "assistant-70b-fp8", "assistant-8b-int8"),
        ("helpdesk", "retail", "banking"),
        0.18,
    ),
    Line(
        "recommendations",
        ("recommendations", "Recommendations", "recs"),
        "recs-home",
        ("two-tower-5", "session-2"),
        ("home", "email"),
        0.14,
    ),
    Line(
        "fraud",
        ("fraud-detection", "Fraud Detection", "fraud_detection", "fraud"),
        "fraud-ml",
        ("fraud-guard-2", "fraud-guard-3", "device-graph-1"),
        ("payments", "accounts"),
        0.10,
    ),
    Line(
        "translation",
        ("translation", "Translation ", "translate"),
        "translation-core",
        ("mt-multi-4-int8", "mt-en-de-9"),
        ("web", "documents"),
        0.06,
    ),
)
UNKNOWN_VALUES = ("skunkworks", "project-zeta")  # tag values that no policy knows
ENVIRONMENTS = ("prod", "prod", "prod", "staging", "dev")


@dataclass(frozen=True)
class Product:
    """One thing that is metered. `rate` is the list price per unit; shape names how its resource is called.

    Prices of coarse units have at most six decimals and amounts three, so cost = rate times amount in nine
    decimals exactly; fine units (tokens, requests) have long costs, as on real bills.
    """

    service: str
    service_name: str
    category: str
    subcategory: str
    usage: str
    operation: str
    family: str
    unit: str
    rate: float
    shape: str
    instance: str = ""
    weight: float = 1.0
    fine: bool = False
    plan: bool = False  # savings plans cover it
    reserved: bool = False  # reservations cover it


@dataclass(frozen=True)
class Cloud:
    """One provider's accounts, regions and products."""

    provider: str
    issuer: str
    payer: str
    payer_name: str
    payer_type: str
    account_type: str
    accounts: tuple[tuple[str, str], ...]  # one per business line in the order of LINES, then shared ones
    regions: tuple[tuple[str, str, str, str], ...]  # id, name, prefix of usage types, zone
    products: tuple[Product, ...]
    plans: tuple[tuple[str, str, str], ...]  # id, name, payment option
    plan_type: str
    reservation: str


def resource_id(
    cloud: Cloud, shape: str, region: str, account: str, line: str, model: str, unique: str
) -> str | None:
    """How the provider calls a resource of this shape; None for what has no resource."""
    if shape.startswith("none"):
        return None
    if cloud.provider == "Microsoft":
        kind = {
            "virtualmachine": "microsoft.compute/virtualmachines",
            "openai": "microsoft.cognitiveservices/accounts",
            "mlendpoint": "microsoft.machinelearningservices/workspaces",
            "storage": "microsoft.storage/storageaccounts",
            "sql": "microsoft.sql/servers",
        }[shape]
        group = f"/subscriptions/{account}/resourcegroups/rg-{line}"
        return f"{group}/providers/{kind}/{line}-{model}-{unique[:6]}".lower()
    return {
        "instance": f"i-0{unique[:16]}",
        "volume": f"vol-0{unique[:16]}",
        "endpoint": f"arn:aws:sagemaker:{region}:{account}:endpoint/{line}-{model}-{unique[:6]}",
        "profile": f"arn:aws:bedrock:{region}:{account}:application-inference-profile/{line}-{unique[:8]}",
        "bucket": f"acme-{line}-features-{unique[:6]}",
        "logs": f"arn:aws:logs:{region}:{account}:log-group:/acme/{line}/{model}",
        "database": f"arn:aws:rds:{region}:{account}:db:{line}-features-{unique[:6]}",
    }[shape]
