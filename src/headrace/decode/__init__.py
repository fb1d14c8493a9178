"""What `headrace decode` is made of: bytes of any kind in, items to be shown out. Pure but for `inputs`, which reads.

    inputs                   what is read, and what it is
    hextext                  hex text in its usual forms -> bytes
    capture, packets, tcp    pcap and pcapng -> packets -> TCP segments -> the bytes of each direction
    framing, exchange        bytes of a connection -> frames -> requests and replies that belong together
    bodies, tolerant, guess  a frame -> a message, also a damaged one, or one whose request was not captured
    segment, sidecars        files of a log directory
    fields, record_nodes     messages and record batches -> nodes
    names, internal          names of topic ids; records of internal topics -> nodes
    nodes, headlines         events -> items: a headline and a tree of nodes
    rendering, summary       items -> text, JSON, totals

Read next: `headrace.cli.decode`, which puts them together.
"""
