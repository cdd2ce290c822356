"""The sample payer of Azure: subscriptions, regions, products and prices."""

from __future__ import annotations

from weighbridge.billing.samples.catalogue import Cloud, Product

_PLANS = "/providers/Microsoft.BillingBenefits/savingsPlanOrders/5E1A0001/savingsPlans"


def _vm(size: str, rate: float, weight: float) -> Product:
    return Product(
        "Microsoft.Compute", "Virtual Machines", "Compute", "Virtual Machines", f"{size} Compute Hour", "",
        "Virtual Machines", "Hours", rate, "virtualmachine", size, weight, plan=True,
    )  # fmt: skip


AZURE = Cloud(
    provider="Microsoft",
    issuer="Microsoft",
    payer="/providers/Microsoft.Billing/billingAccounts/8a1b2c3d",
    payer_name="Acme Ltd",
    payer_type="Billing Profile",
    account_type="Subscription",
    accounts=tuple(
        (f"3f2504e0-4f89-41d3-9a0c-0305e82c33{n:02d}", name)
        for n, name in enumerate(
            ("search", "ads", "assistant", "recommendations", "fraud", "translation", "research", "shared"), 1
        )
    ),
    regions=(
        ("eastus", "East US", "", ""),
        ("westus2", "West US 2", "", ""),
        ("westeurope", "West Europe", "", ""),
        ("northeurope", "North Europe", "", ""),
        ("southeastasia", "Southeast Asia", "", ""),
        ("japaneast", "Japan East", "", ""),
    ),
    products=(
        _vm("ND96asr v4", 27.197, 2),
        _vm("NC24ads A100 v4", 3.673, 8),
        _vm("NV36ads A10 v5", 3.2, 8),
        _vm("D8s v5", 0.384, 10),
        Product(
            "Microsoft.CognitiveServices", "Azure OpenAI", "AI and Machine Learning", "Generative AI",
            "gpt 5 mini Inp glbl Tokens", "", "Azure OpenAI", "1K Tokens", 0.00025, "openai", "", 8,
            fine=True,
        ),
        Product(
            "Microsoft.MachineLearningServices", "Azure Machine Learning", "AI and Machine Learning",
            "Machine Learning Platforms", "NC24ads A100 v4 Online Endpoint", "", "Azure Machine Learning",
            "Hours", 3.673, "mlendpoint", "NC24ads A100 v4", 6, plan=True,
        ),
        Product(
            "Microsoft.Storage", "Storage Accounts", "Storage", "Object Storage", "Hot LRS Data Stored", "",
            "Storage", "GB/Month", 0.0184, "storage", "", 10,
        ),
        Product(
            "Microsoft.Storage", "Storage Accounts", "Storage", "Object Storage", "Hot Read Operations", "",
            "Storage", "10K", 5.0e-3, "storage", "", 10, fine=True,
        ),
        Product(
            "Microsoft.Network", "Bandwidth", "Networking", "Content Delivery",
            "Standard Data Transfer Out", "", "Bandwidth", "GB", 0.087, "virtualmachine", "", 8,
        ),
        Product(
            "Microsoft.Sql", "SQL Database", "Databases", "Relational Databases", "vCore", "", "SQL Database",
            "Hours", 0.504, "sql", "", 5, reserved=True,
        ),
    ),
    plans=(
        (f"{_PLANS}/0001", "compute-plan-1", "No Upfront"),
        (f"{_PLANS}/0002", "compute-plan-2", "No Upfront"),
    ),
    plan_type="Savings plan",
    reservation="/providers/Microsoft.Capacity/reservationOrders/7B2C0001/reservations/0001",
)  # fmt: skip
