"""Tests that need a process to themselves: other clients would be seen on the loop that all share."""
