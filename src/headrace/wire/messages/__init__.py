"""Kafka's messages, one typed class each; `wire.api` finds them by key."""
