"""Durable workflows written as YAML or TOML files."""

__version__ = "0.1.0"
