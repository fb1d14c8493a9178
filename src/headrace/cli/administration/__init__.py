"""Commands that look after a cluster, each thin over `AdminClient` or `SchemaRegistryClient`.

    topics, configs                                  what there is and how it is set
    group_commands                                   who reads, how far they are, and where they begin
    acls, users, quotas                              who may do what, and how much of it
    transactions                                     what is open, and what hangs
    cluster                                          brokers, directories, controllers, leaders, moves
    registry                                         schemas
    error_names, broker_versions                     what a code means, what brokers understand
    partitions                                       TOPIC:PARTITION as it is typed and shown

Read next: `cli.shared.subcommands`.
"""
