"""Weighbridge: brings every dollar of the cloud bill to the line that spent it."""

__version__ = "0.1.0"
