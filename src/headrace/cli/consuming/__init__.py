"""The parts of `headrace consume`.

    consume_options     the command line, read and checked
    offset_expressions  where to begin and to end: -o beginning, -10, @-1h, 5:end
    record_sources      records out of topics: ranges with an end, partitions followed, a group, a share group
    portions            some records of one partition, as columns, and as lists where something needs them
    record_filters      by key, header, value and JMESPath
    schema_values       values with schemas, as JSON
    encodings_of_text   escapes in delimiters, and encodings of binary keys and values
    portion_rows        what the parts of a row read of a portion, and the rows joined, piece by piece
    line_formats        portions -> bytes: values and delimiters, and format strings with kcat's and rpk's tokens
    envelopes           portions -> JSON lines and CSV that `headrace produce` reads back
    record_outputs      bytes and columns -> standard output and files; Parquet and Arrow

Read next: `headrace.cli.consume`, which puts them together.
"""
