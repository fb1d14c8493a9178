"""Registries in memory for whole tests."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.schema_registry import SchemaRegistryClient

__all__ = ["mock_url"]


@contextmanager
def mock_url() -> Iterator[str]:
    """URL of a new registry, which would be gone as soon as no client has it: one does as long as this lasts."""
    url = f"mock://{uuid.uuid4().hex}"
    with SchemaRegistryClient({"url": url}):
        yield url
