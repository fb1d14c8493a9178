"""The clients: asyncio ones here are the truth; `client.sync` holds the same without `await`."""
