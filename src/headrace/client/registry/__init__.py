"""The Schema Registry client: one engine whose rules ask a registry, and its faces, blocking and for asyncio."""
