"""What share groups know of partitions (KIP-932): records that are handed out, sessions, where each group stands."""
