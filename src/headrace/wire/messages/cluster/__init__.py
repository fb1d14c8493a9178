"""Messages that every client sends: versions, authentication, metadata."""
