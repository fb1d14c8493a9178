"""The embedded broker: a Kafka cluster of one or several node ids in one process, on this package's wire and records.

It serves what producers, consumers, classic groups and administration need, with the log in memory or on disk. It is
for tests, demonstrations and single machines: there is one copy of the data, and no authentication.

It never imports the client's layers (`machines`, `net`, `client`). Read next: `broker.broker`, then `broker.server`.
"""
