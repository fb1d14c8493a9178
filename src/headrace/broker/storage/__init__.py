"""What a node keeps: topics, partitions, logs, producers' states."""
