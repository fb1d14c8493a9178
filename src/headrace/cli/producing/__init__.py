"""The parts of `headrace produce`.

    options    the command line, read and checked
    inputs     files and standard input as chunks of bytes; Ctrl-C ends every wait
    slices     some records on their way from an input to the producer, column by column
    lines      lines                             -> slices
    jsonlines  JSON lines: envelopes, or values  -> slices
    csvrows    CSV with a role for each column   -> slices
    parquet    Parquet with a role for each column: Arrow columns, no Python object for a record
    sink       slices and columns -> the producer: room, rate, transactions, Ctrl-C
    ledger     what became of the records: counts, and the first failures in detail
    progress   the bar on a terminal

Read next: `headrace.cli.produce`, which puts them together.
"""
