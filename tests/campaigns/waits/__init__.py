"""Random programs in which no record may wait, be lost or come twice: `python -m tests.campaigns.waits --seconds
300`."""
