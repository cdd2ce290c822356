"""The sample payer of AWS: accounts, regions, products and prices."""

from __future__ import annotations

from weighbridge.billing.samples.catalogue import Cloud, Product

_PLANS = "arn:aws:savingsplans::100000000001:savingsplan"


def _ec2(instance: str, rate: float, weight: float) -> Product:
    return Product(
        "AmazonEC2", "Amazon Elastic Compute Cloud", "Compute", "Virtual Machines", f"BoxUsage:{instance}",
        "RunInstances", "Compute Instance", "Hrs", rate, "instance", instance, weight, plan=True,
    )  # fmt: skip


def _sagemaker(instance: str, rate: float, weight: float) -> Product:
    return Product(
        "AmazonSageMaker", "Amazon SageMaker", "AI and Machine Learning", "Machine Learning Platforms",
        f"Host:ml.{instance}", "RunInstance", "ML Instance", "Hrs", rate, "endpoint", f"ml.{instance}",
        weight, plan=True,
    )  # fmt: skip


def _bedrock(model: str, way: str, rate: float, weight: float) -> Product:
    return Product(
        "AmazonBedrock", "Amazon Bedrock", "AI and Machine Learning", "Generative AI",
        f"{model}-{way}-tokens", "InvokeModelInference", "Amazon Bedrock", "1K tokens", rate, "profile", "",
        weight, fine=True,
    )  # fmt: skip


AWS = Cloud(
    provider="AWS",
    issuer="Amazon Web Services, Inc.",
    payer="100000000001",
    payer_name="acme-payer",
    payer_type="Management Account",
    account_type="Member Account",
    accounts=(
        ("210000000001", "search-prod"),
        ("210000000002", "ads-prod"),
        ("210000000003", "assistant-prod"),
        ("210000000004", "recommendations-prod"),
        ("210000000005", "fraud-prod"),
        ("210000000006", "translation-prod"),
        ("210000000007", "ml-research"),
        ("210000000008", "shared-platform"),
    ),
    regions=(
        ("us-east-1", "US East (N. Virginia)", "", "us-east-1a"),
        ("us-west-2", "US West (Oregon)", "USW2-", "us-west-2b"),
        ("eu-west-1", "EU (Ireland)", "EU-", "eu-west-1a"),
        ("eu-central-1", "EU (Frankfurt)", "EUC1-", "eu-central-1c"),
        ("ap-southeast-1", "Asia Pacific (Singapore)", "APS1-", "ap-southeast-1a"),
        ("ap-northeast-1", "Asia Pacific (Tokyo)", "APN1-", "ap-northeast-1d"),
    ),
    products=(
        _ec2("p4d.24xlarge", 32.7726, 2),
        _ec2("g5.2xlarge", 1.212, 8),
        _ec2("g5.12xlarge", 5.672, 5),
        _ec2("inf2.xlarge", 0.7582, 6),
        _ec2("inf2.24xlarge", 6.49063, 3),
        _ec2("m6i.2xlarge", 0.384, 8),
        _sagemaker("g5.4xlarge", 2.03, 6),
        _sagemaker("inf2.8xlarge", 2.36212, 4),
        _bedrock("Claude4.5Sonnet", "input", 0.003, 5),
        _bedrock("Claude4.5Sonnet", "output", 0.015, 5),
        _bedrock("Llama3-3-70B", "input", 0.00072, 4),
        Product(
            "AmazonEC2", "Amazon Elastic Compute Cloud", "Storage", "Block Storage", "EBS:VolumeUsage.gp3",
            "CreateVolume-Gp3", "Storage", "GB-Mo", 0.08, "volume", "", 8,
        ),
        Product(
            "AmazonS3", "Amazon Simple Storage Service", "Storage", "Object Storage", "TimedStorage-ByteHrs",
            "StandardStorage", "Storage", "GB-Mo", 0.023, "bucket", "", 8,
        ),
        Product(
            "AmazonS3", "Amazon Simple Storage Service", "Storage", "Object Storage", "Requests-Tier2",
            "GetObject", "API Request", "Requests", 4.0e-7, "bucket", "", 10, fine=True,
        ),
        Product(
            "AWSDataTransfer", "AWS Data Transfer", "Networking", "Content Delivery",
            "DataTransfer-Out-Bytes", "RunInstances", "Data Transfer", "GB", 0.09, "instance", "", 8,
        ),
        Product(
            "AmazonCloudWatch", "Amazon CloudWatch", "Management and Governance", "Observability",
            "CW:MetricMonitorUsage", "MetricStorage", "Metric", "Metrics", 4.032e-4, "logs", "", 8, fine=True,
        ),
        Product(
            "AmazonRDS", "Amazon Relational Database Service", "Databases", "Relational Databases",
            "InstanceUsage:db.r6g.xlarge", "CreateDBInstance:0014", "Database Instance", "Hrs", 0.45,
            "database", "db.r6g.xlarge", 5, reserved=True,
        ),
    ),
    plans=(
        (f"{_PLANS}/0c5a1f7e-1111-4a52-9f6d-7a6be1c0a001", "ComputeSavingsPlans", "No Upfront"),
        (f"{_PLANS}/0c5a1f7e-2222-4a52-9f6d-7a6be1c0a002", "ComputeSavingsPlans", "Partial Upfront"),
    ),
    plan_type="Compute Savings Plans",
    reservation="arn:aws:rds:us-east-1:210000000005:ri:ri-2026-02-03-11-22-33-444",
)  # fmt: skip
