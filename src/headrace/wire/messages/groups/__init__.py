"""Messages of groups: classic, consumer, share and streams groups."""
