// Administration through Java's Admin client.

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ClassicGroupDescription;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

final class Administration {
    private static final Map<String, Admin> ADMINS = new HashMap<>();
    private static final List<ConfigEntry.ConfigSource> SOURCES = List.of(
        ConfigEntry.ConfigSource.UNKNOWN, ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG, ConfigEntry.ConfigSource.DEFAULT_CONFIG);

    static final Map<String, Clients.Operation> OPERATIONS = Map.ofEntries(
        Map.entry("create_topic", Administration::createTopic), Map.entry("list_topics", Administration::listTopics),
        Map.entry("describe_topic", Administration::describeTopic),
        Map.entry("delete_topic", Administration::deleteTopic),
        Map.entry("create_partitions", Administration::createPartitions),
        Map.entry("describe_configs", Administration::describeConfigs),
        Map.entry("alter_configs", Administration::alterConfigs),
        Map.entry("delete_records", Administration::deleteRecords),
        Map.entry("list_offsets", Administration::listOffsets),
        Map.entry("describe_cluster", Administration::describeCluster),
        Map.entry("list_groups", Administration::listGroups),
        Map.entry("describe_group", Administration::describeGroup),
        Map.entry("delete_group", Administration::deleteGroup),
        Map.entry("fetch_offsets", Administration::fetchOffsets),
        Map.entry("alter_offsets", Administration::alterOffsets),
        Map.entry("delete_offsets", Administration::deleteOffsets));

    /** The one client for a cluster; it stays open, as a program's would. */
    private static Admin admin(JsonNode command) {
        return ADMINS.computeIfAbsent(Clients.text(command, "servers"),
                                      servers -> Admin.create(Clients.properties(command)));
    }

    private static String topic(JsonNode command) {
        return Clients.text(command, "topic");
    }

    private static String group(JsonNode command) {
        return Clients.text(command, "group");
    }

    private static Map<String, String> configs(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        node.properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    private static Object createTopic(JsonNode command) throws Exception {
        NewTopic topic = new NewTopic(topic(command), command.path("partitions").asInt(),
                                      (short) command.path("replicas").asInt());
        admin(command).createTopics(List.of(topic.configs(configs(command.path("configs"))))).all().get();
        return null;
    }

    private static Object listTopics(JsonNode command) throws Exception {
        return admin(command).listTopics().names().get();
    }

    private static Object describeTopic(JsonNode command) throws Exception {
        TopicDescription topic = admin(command).describeTopics(List.of(topic(command))).allTopicNames().get()
            .get(topic(command));
        List<Object> partitions = new ArrayList<>();
        topic.partitions().forEach(each -> partitions.add(Map.of(
            "partition", each.partition(), "leader", each.leader().id(), "replicas", ids(each.replicas()),
            "isr", ids(each.isr()))));
        return Map.of("internal", topic.isInternal(), "partitions", partitions);
    }

    private static List<Integer> ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::id).sorted().toList();
    }

    private static Object deleteTopic(JsonNode command) throws Exception {
        admin(command).deleteTopics(List.of(topic(command))).all().get();
        return null;
    }

    private static Object createPartitions(JsonNode command) throws Exception {
        NewPartitions total = NewPartitions.increaseTo(command.path("partitions").asInt());
        admin(command).createPartitions(Map.of(topic(command), total)).all().get();
        return null;
    }

    private static ConfigResource resource(JsonNode command) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic(command));
    }

    private static Object describeConfigs(JsonNode command) throws Exception {
        ConfigResource resource = resource(command);
        Map<String, Object> found = new HashMap<>();
        for (ConfigEntry each : admin(command).describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            Map<String, Object> shown = new HashMap<>();
            shown.put("value", each.value());
            shown.put("source", SOURCES.indexOf(each.source()));
            shown.put("sensitive", each.isSensitive());
            shown.put("type", each.type().toString());
            found.put(each.name(), shown);
        }
        return found;
    }

    private static Object alterConfigs(JsonNode command) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        for (var kind : Map.of("set", AlterConfigOp.OpType.SET, "append", AlterConfigOp.OpType.APPEND,
                               "subtract", AlterConfigOp.OpType.SUBTRACT).entrySet()) {
            configs(command.path(kind.getKey())).forEach(
                (name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), kind.getValue())));
        }
        Clients.texts(command.path("delete")).forEach(
            name -> changes.add(new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE)));
        admin(command).incrementalAlterConfigs(Map.of(resource(command), changes)).all().get();
        return null;
    }

    private static Map<TopicPartition, Long> offsets(JsonNode command) {
        Map<TopicPartition, Long> found = new HashMap<>();
        command.path("offsets").properties().forEach(each -> found.put(
            new TopicPartition(topic(command), Integer.parseInt(each.getKey())), each.getValue().asLong()));
        return found;
    }

    private static Object deleteRecords(JsonNode command) throws Exception {
        Map<TopicPartition, RecordsToDelete> wanted = new HashMap<>();
        offsets(command).forEach((partition, offset) -> wanted.put(partition, RecordsToDelete.beforeOffset(offset)));
        Map<Integer, Long> found = new TreeMap<>();
        for (var each : admin(command).deleteRecords(wanted).lowWatermarks().entrySet()) {
            found.put(each.getKey().partition(), each.getValue().get().lowWatermark());
        }
        return found;
    }

    private static Object listOffsets(JsonNode command) throws Exception {
        Admin admin = admin(command);
        String at = Clients.text(command, "at");
        OffsetSpec spec = switch (at) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max_timestamp" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(Long.parseLong(at));
        };
        TopicDescription topic = admin.describeTopics(List.of(topic(command))).allTopicNames().get()
            .get(topic(command));
        Map<TopicPartition, OffsetSpec> wanted = topic.partitions().stream().collect(
            Collectors.toMap(each -> new TopicPartition(topic.name(), each.partition()), each -> spec));
        Map<Integer, Long> found = new TreeMap<>();
        admin.listOffsets(wanted).all().get().forEach((where, info) -> found.put(where.partition(), info.offset()));
        return found;
    }

    private static Object describeCluster(JsonNode command) throws Exception {
        var cluster = admin(command).describeCluster();
        return Map.of("brokers", ids(cluster.nodes().get()), "controller", cluster.controller().get().id(),
                      "has_id", !cluster.clusterId().get().isEmpty());
    }

    private static Object listGroups(JsonNode command) throws Exception {
        return admin(command).listGroups().all().get().stream().map(GroupListing::groupId).sorted().toList();
    }

    /** Asked twice: as a consumer group, where the client must find out that it is a classic one, and as a classic. */
    private static Object describeGroup(JsonNode command) throws Exception {
        List<String> wanted = List.of(group(command));
        ClassicGroupDescription classic = admin(command).describeClassicGroups(wanted).all().get().get(group(command));
        ConsumerGroupDescription group = admin(command).describeConsumerGroups(wanted).all().get().get(group(command));
        if (!members(group.members()).equals(members(classic.members()))
            || !group.groupState().toString().equals(classic.state().toString())) {
            throw new IllegalStateException(group + " is not " + classic);
        }
        return Map.of("state", classic.state().toString(), "protocol", classic.protocolData(),
                      "members", members(classic.members()));
    }

    private static List<Object> members(Collection<MemberDescription> members) {
        return members.stream().<Object>map(each -> Map.of(
            "client_id", each.clientId(),
            "assignment", each.assignment().topicPartitions().stream().map(TopicPartition::toString).sorted().toList()))
            .toList();
    }

    private static Object deleteGroup(JsonNode command) throws Exception {
        admin(command).deleteConsumerGroups(List.of(group(command))).all().get();
        return null;
    }

    private static Object fetchOffsets(JsonNode command) throws Exception {
        Map<Integer, Long> found = new TreeMap<>();
        admin(command).listConsumerGroupOffsets(group(command)).partitionsToOffsetAndMetadata().get().forEach(
            (where, committed) -> {
                if (committed != null && where.topic().equals(topic(command))) {
                    found.put(where.partition(), committed.offset());
                }
            });
        return found;
    }

    private static Object alterOffsets(JsonNode command) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        offsets(command).forEach((partition, offset) -> wanted.put(partition, new OffsetAndMetadata(offset)));
        admin(command).alterConsumerGroupOffsets(group(command), wanted).all().get();
        return null;
    }

    private static Object deleteOffsets(JsonNode command) throws Exception {
        Set<TopicPartition> wanted = offsets(command).keySet();
        admin(command).deleteConsumerGroupOffsets(group(command), wanted).all().get();
        return null;
    }
}
