"""Topics, their configurations and groups: made, described, changed and deleted."""

import sys

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

servers, _, topic = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": servers})


def outcome(futures):
    for key, future in sorted(futures.items(), key=lambda each: str(each[0])):
        try:
            print(key if isinstance(key, str) else type(key).__name__, "->", future.result(30))
        except KafkaException as error:
            print(key if isinstance(key, str) else type(key).__name__, "-> error", error.args[0].name())


names = [f"{topic}-{number}" for number in range(2)]
new = [NewTopic(name, num_partitions=2, replication_factor=1, config={"retention.ms": "60000"}) for name in names]
outcome(admin.create_topics(new, validate_only=True, operation_timeout=30))
outcome(admin.create_topics(new, operation_timeout=30))
outcome(admin.create_topics(new, operation_timeout=30))
outcome(admin.create_partitions([NewPartitions(names[0], 4), NewPartitions(names[1], 1)]))
while names[0] not in (topics := admin.list_topics(timeout=30).topics) or len(topics[names[0]].partitions) < 4:
    pass  # brokers learn of it one after the other
described = admin.describe_topics(TopicCollection(names))
for name in names:
    found = described[name].result(30)
    print(found.name, len(found.partitions), found.is_internal, [each.id for each in found.partitions])
resource = ConfigResource(ResourceType.TOPIC, names[0])
entries = admin.describe_configs([resource])[resource].result(30)
source = ConfigSource(entries["retention.ms"].source)
print(entries["retention.ms"].value, source.name, entries["retention.ms"].is_default)
resource = ConfigResource(ResourceType.TOPIC, names[0], incremental_configs=[
    ConfigEntry("retention.ms", "70000", incremental_operation=AlterConfigOpType.SET),
    ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)])
outcome(admin.incremental_alter_configs([resource]))
while (entries := admin.describe_configs([resource])[resource].result(30))["retention.ms"].value != "70000":
    pass
print(entries["cleanup.policy"].value)
print(sorted(name for name in admin.list_topics(timeout=30).topics if name in names))

producer = Producer({"bootstrap.servers": servers})
producer.produce(names[0], b"1", b"key", partition=0)
producer.flush(30)
consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
consumer.subscribe([names[0]])
while (message := consumer.poll(1.0)) is None:
    pass
group = admin.describe_consumer_groups([topic])[topic].result(30)
print(group.group_id, group.state, group.is_simple_consumer_group, group.partition_assignor, len(group.members))
outcome(admin.delete_consumer_groups([topic]))
consumer.close()
listed = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(30)
print([each.group_id for each in listed.valid if each.group_id == topic], listed.errors)
outcome(admin.delete_consumer_groups([topic]))
rule = AclBinding(ResourceType.TOPIC, names[0], ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ,
                  AclPermissionType.ALLOW)
outcome(admin.create_acls([rule]))
outcome(admin.delete_topics(names, operation_timeout=30))
for wrong in (lambda: admin.create_topics([]), lambda: admin.create_topics("t"), lambda: NewTopic(),
              lambda: admin.describe_configs([]), lambda: admin.create_partitions([NewTopic("t", 1)])):
    try:
        wrong()
    except (TypeError, ValueError, AttributeError):
        print("refused")
