"""What producers leave behind when they are closed: `python -m tests.leaks --producers 1000`."""
