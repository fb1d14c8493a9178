"""Messages of administration, by what they are about."""
