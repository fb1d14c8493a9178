"""A workshop for fuzzing: an environment of its own with Atheris, and the native module built with sanitizers.

Everything lies in `.cache/fuzz`; the package's own environment and its native module are not touched.
Read next: `tools.fuzz.workshop`.
"""
