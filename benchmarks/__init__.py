"""Benchmarks: ours beside its peers, on the same broker, in the same run. `make bench` runs all of them small."""
