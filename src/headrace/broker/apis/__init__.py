"""Requests to replies, one module for each family of APIs."""
