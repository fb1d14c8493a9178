"""The producer as applications see it: blocking and asyncio, plain and serializing."""
