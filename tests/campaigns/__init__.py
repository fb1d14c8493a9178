"""Long runs by seed or by time, each with a short smoke that belongs to `make test`."""
