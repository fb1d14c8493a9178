"""Kafka's messages, one typed class each, grouped by use; `wire.api` finds them by key.

Nothing is imported here: who sends few messages loads few modules.
"""
