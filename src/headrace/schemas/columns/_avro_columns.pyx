# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of Avro in C."""
from headrace.schemas.columns cimport _growing
