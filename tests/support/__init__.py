"""What tests share: raw clients, scripted brokers, conversations, samples."""
