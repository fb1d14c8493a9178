"""A chain of groups whose members come, go, freeze and die: `python -m tests.campaigns.chaos --load etl`."""
