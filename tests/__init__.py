"""Tests. `tests/README.md` says what lies where."""
