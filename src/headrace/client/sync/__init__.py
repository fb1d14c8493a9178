"""Blocking faces of the asyncio clients, under confluent_kafka's names. They run on one background loop thread."""
