"""The parts of `headrace copy`.

    copy_options    the command line, read and checked
    copy_plan       which offsets of the source are to be copied, and whether they fit into the target
    copy_positions  how far a copy is, and where that is kept
    copied_rows     rows of fetched columns on their way into a producer, and where each was read

Read next: `headrace.cli.copy`, which puts them together; `headrace.cli.producing.sink`, which sends.
"""
