"""What closed clients leave behind: `python -m tests.campaigns.leaks --producers 1000 --consumers 1000`."""
