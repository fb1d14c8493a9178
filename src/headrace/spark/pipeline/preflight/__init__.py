"""What is known of a pipeline before Spark starts: what would run, and what brokers and registry say to it."""
