"""Formats: values to bytes and back by one schema. Nothing here knows of registries, topics or clients."""
