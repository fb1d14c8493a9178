"""Messages between brokers and controllers, and what they keep in logs."""
