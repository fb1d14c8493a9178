"""How Sphinx builds the site (decision 0045): `make docs` runs `sphinx-build -c docs . build/site`.

Pages are plain Markdown that reads as well on a forge: no directive stands in any of them. What only Sphinx needs is
here: the navigation, the reference of the API from docstrings, and what links out of the site lead to. The source
directory is the root of the repository, so that relative links to ARCHITECTURE.md and others hold.
"""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["HEADRACE_PURE"] = "1"  # native classes hide the types of what they take and return

import headrace
from tools.api_reference import directive

project = "headrace"
author = "the headrace authors"
project_copyright = "the headrace authors, Apache-2.0"
release = version = headrace.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
root_doc = "docs/index"
include_patterns = ["docs/**", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "dist", "site", "src", "tests", "tools", "benchmarks", "examples", "**/__pycache__"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

default_role = "code"  # docstrings write `name` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "headrace"
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"

NAVIGATION = {
    "Start": ["Ten minutes of Kafka <tutorial/first-steps>", "Ten minutes of Spark <tutorial/spark>",
              "First mistakes <first-mistakes>"],
    "Concepts": ["Delivery <concepts/delivery>", "Rebalances <concepts/rebalances>",
                 "Transactions <concepts/transactions>", "Threads and forks <concepts/threads>",
                 "Memory <concepts/memory>"],
    "Tasks": ["Sending records <how-to/producer>", "Reading records <how-to/consumer>",
              "Share groups <how-to/share-groups>", "Columns and lag <how-to/columns>",
              "Topics as frames <how-to/frames>", "Avro, JSON Schema, Protobuf <how-to/schemas>",
              "Schema Registry <how-to/registry>",
              "Administration <how-to/admin>", "Security <how-to/security>", "Watching a client <how-to/observe>",
              "Testing programs <how-to/testing>",
              "Libraries on confluent_kafka, as FastStream <how-to/libraries-on-confluent-kafka>",
              "Sending from the shell <how-to/produce-from-the-shell>",
              "Reading and copying from the shell <how-to/command-line>", "Decoding bytes <how-to/decode>"],
    "Spark": ["Reading topics <how-to/spark-source>", "Values with schemas <how-to/spark-values>",
              "Guarantees of writes <how-to/spark-guarantees>", "Declared pipelines <how-to/pipelines>",
              "Planning a cluster <how-to/plan-a-cluster>"],
    "Coming from": ["confluent-kafka <from/confluent-kafka>", "kafka-python <from/kafka-python>",
                    "aiokafka <from/aiokafka>", "Spark's own connector <how-to/from-sparks-connector>"],
    "Reference": ["API <reference/api/index>", "Properties <reference/configuration>",
                  "Options in Spark <reference/spark-options>", "The command line <reference/command-line>",
                  "Errors of producing <reference/produce-errors>",
                  "The embedded broker <reference/broker>", "KIPs <reference/kips>", "Speed <reference/speed>",
                  "Benchmarks <reference/benchmarks>", "Statements <reference/statements>",
                  "What stays <reference/stability>", "Reporting a weakness <../SECURITY>"],
    "Inside": ["Architecture <../ARCHITECTURE>", "Contributing <../CONTRIBUTING>", "Tests <internals/testing>",
               "States <internals/states>", "Invariants <internals/invariants>", "Glossary <internals/glossary>",
               "Decisions <decisions/index>", "Changelog <../CHANGELOG>"],
}
"""What stands in the sidebar. A page that nobody lists is a warning of Sphinx's, and so an error."""

CHILDREN = {"docs/index": NAVIGATION, "docs/reference/api/index": {"": ["*"]}, "docs/decisions/index": {"": ["0*"]},
            "docs/reference/statements": {"": ["statements/*"]}}


def add_navigation(_: Any, page: str, source: list[str]) -> None:
    """Append the pages below a page to its text, hidden there and shown in the sidebar."""
    for caption, below in CHILDREN.get(page, {}).items():
        listed = "\n".join(below)
        shown = f":caption: {caption}" if caption else ":maxdepth: 1"
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n{shown}\n\n{listed}\n```\n"


def describe_modules(_: Any, page: str, source: list[str]) -> None:
    """Have each name described on one page of the reference only."""
    if page.startswith("docs/reference/api/"):
        source[0] = re.sub(r"(?m)^\.\. automodule:: (\S+)\n", lambda found: directive(found[1]), source[0])


def mark_examples(_: Any, kind: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Make literal blocks of what stands indented behind an empty line in a docstring, as Markdown has it."""
    marked = [""] if kind in {"attribute", "data", "property"} else []  # "type: text" is not what these begin with
    outer = 0
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line and at and not lines[at - 1] and indent > outer and marked[-2:-1] != ["::"]:
            marked += [" " * outer + "::", ""]
            outer = indent
        elif line:
            outer = indent
        marked.append(line)
    lines[:] = marked


def list_values(_: Any, kind: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Add the values of an enumeration to what its docstring says."""
    if isinstance(obj, type) and issubclass(obj, Enum):
        lines += ["", "Values: " + ", ".join(f"``{each.name}``" for each in obj) + ".", ""]


def lead_to_the_start(app: Any, failed: Exception | None) -> None:
    """Let the root of the site lead to its start page."""
    if failed is None:
        Path(app.outdir, "index.html").write_text(
            '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><title>headrace</title>\n')


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("source-read", describe_modules)
    app.connect("autodoc-process-docstring", mark_examples, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", list_values)
    app.connect("build-finished", lead_to_the_start)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
