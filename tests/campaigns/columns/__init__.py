"""Damaged values against the codecs of columns."""
