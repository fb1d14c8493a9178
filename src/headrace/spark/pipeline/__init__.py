"""Declared pipelines: read, run, shown, reported."""
