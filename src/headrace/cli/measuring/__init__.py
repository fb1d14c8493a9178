"""The parts of `headrace perf`.

    options   the command line of `headrace perf produce`, read and checked
    peers     what each client is: how it is found, and its names for our properties
    worker    a measured process: one client sends, and prints its figures, a line of JSON at a time
    figures   rates and percentiles
    tables    what is shown at the end
    plot      the same as a picture

Read next: `headrace.cli.perf`, which runs the workers.
"""
