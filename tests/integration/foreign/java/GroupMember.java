// A member of a consumer group of either protocol. What it has read is committed often, and before it is given up: by
// itself, because a cooperative member commits automatically before it joins, and not what it reads until it gives up.

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

final class GroupMember extends Member implements ConsumerRebalanceListener {
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", PACKAGE + "RangeAssignor", "roundrobin", PACKAGE + "RoundRobinAssignor",
        "sticky", PACKAGE + "StickyAssignor", "cooperative-sticky", PACKAGE + "CooperativeStickyAssignor");

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final String pattern;
    private final boolean classic;

    GroupMember(JsonNode command) {
        super(command);
        pattern = Clients.text(command, "pattern");
        classic = !Clients.text(command, "protocol").equals("consumer");
        consumer = Clients.consumer(command, settings(command));
    }

    private Map<String, Object> settings(JsonNode command) {
        String assignor = Clients.text(command, "assignor");
        String instance = Clients.text(command, "instance");
        Map<String, Object> settings = new HashMap<>(Map.of(
            "group.id", Clients.text(command, "group"), "client.id", Clients.text(command, "member"),
            "enable.auto.commit", true, "auto.commit.interval.ms", 100,
            "group.protocol", classic ? "classic" : "consumer"));
        if (!instance.isEmpty()) {
            settings.put("group.instance.id", instance);
        }
        if (classic) {
            settings.put("session.timeout.ms", command.path("session_ms").asInt(10_000));
            settings.put("heartbeat.interval.ms", 200);
            settings.put("partition.assignment.strategy",
                         Arrays.stream(assignor.split(",")).map(ASSIGNORS::get).toList());
        } else if (!assignor.isEmpty()) {
            settings.put("group.remote.assignor", assignor);
        }
        return settings;
    }

    private void subscribe() {
        if (pattern.isEmpty()) {
            consumer.subscribe(topics, this);
        } else if (classic) {
            consumer.subscribe(Pattern.compile(pattern), this);
        } else {
            consumer.subscribe(new SubscriptionPattern(pattern), this);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        consumer.commitSync();
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
    }

    @Override
    protected void take() {
        try (consumer) {
            subscribe();
            while (!leaving) {
                consumer.poll(Duration.ofMillis(50)).forEach(this::got);
                holds(consumer.assignment());
            }
        }
    }
}
