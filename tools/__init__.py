"""Tools of the repository: programs that tests, benchmarks and people run. No part of the installed package."""
