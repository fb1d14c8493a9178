"""The parts of `headrace produce`.

    options    the command line, read and checked
    inputs     files and standard input as chunks of bytes, without waiting deafly
    slices     some records on their way from an input to the producer, column by column
    lines      lines                             -> slices
    jsonlines  JSON lines: envelopes, or values  -> slices
    csvrows    CSV with a role for each column   -> slices
    parquet    Parquet with a role for each column: Arrow columns, no Python object for a record
    sink       slices and columns -> the producer: room, rate, transactions, Ctrl-C
    ledger     what became of the records, and how it is told
    progress   the bar on a terminal

Read next: `headrace.cli.produce`, which puts them together.
"""
