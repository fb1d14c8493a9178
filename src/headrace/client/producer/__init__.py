"""The producer: its engine here, its faces in `client.producer.faces`."""
