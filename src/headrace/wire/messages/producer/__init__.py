"""Messages of producers and their transactions."""
