// A member of a group, polled in a thread of its own until it leaves.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

final class Member extends Thread {
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", PACKAGE + "RangeAssignor", "roundrobin", PACKAGE + "RoundRobinAssignor",
        "sticky", PACKAGE + "StickyAssignor", "cooperative-sticky", PACKAGE + "CooperativeStickyAssignor");

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final List<String> topics;
    private final List<byte[]> values = new ArrayList<>();
    private List<TopicPartition> held = List.of();
    private RuntimeException failed;
    private volatile boolean leaving;

    Member(JsonNode command) {
        setDaemon(true);
        topics = Clients.texts(command.path("topics"));
        consumer = Clients.consumer(command, Map.of(
            "group.id", Clients.text(command, "group"), "group.protocol", "classic", "session.timeout.ms", 10_000,
            "heartbeat.interval.ms", 200, "enable.auto.commit", true,
            "partition.assignment.strategy", ASSIGNORS.get(Clients.text(command, "assignor"))));
    }

    @Override
    public void run() {
        try (consumer) {
            consumer.subscribe(topics);
            while (!leaving) {
                Iterable<ConsumerRecord<byte[], byte[]>> records = consumer.poll(Duration.ofMillis(100));
                synchronized (this) {
                    records.forEach(record -> values.add(record.value()));
                    held = List.copyOf(consumer.assignment());
                }
            }
            consumer.commitSync();
        } catch (RuntimeException error) {
            synchronized (this) {
                failed = error;
            }
        }
    }

    synchronized List<Object> assignment() {
        complain();
        return held.stream()
            .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
            .<Object>map(each -> List.of(each.topic(), each.partition())).toList();
    }

    synchronized List<byte[]> received() {
        complain();
        return List.copyOf(values);
    }

    void leave() throws InterruptedException {
        leaving = true;
        join(Clients.PATIENCE.toMillis());
        synchronized (this) {
            complain();
        }
    }

    private void complain() {
        if (failed != null) {
            throw failed;
        }
    }
}
