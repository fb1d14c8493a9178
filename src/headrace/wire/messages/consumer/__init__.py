"""Messages of consumers: records and offsets."""
