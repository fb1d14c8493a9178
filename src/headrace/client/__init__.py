"""The clients: an engine for each, and faces for threads and for asyncio."""
