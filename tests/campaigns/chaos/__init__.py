"""Producers and readers at a real Kafka that is hurt without pause: nothing acknowledged is lost, twice or late."""
