"""Builds what is published, and tries it as a user would: installed, away from the source.

`python -m tools.wheels` builds the sdist, and a wheel for each Python that it finds, and tries each in an environment
of its own. `--without-compiler` installs the sdist where nothing can compile, `--tests` runs tests/unit against each
installed wheel, and `--sbom` writes down what a plain install brings along.
"""
