// A member of a share group. Under "explicit" acknowledgement it may release each record that comes for the first time.

import java.time.Duration;
import java.util.Properties;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

final class ShareMember extends Member {
    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final boolean explicit;
    private final boolean releases;

    ShareMember(JsonNode command) {
        super(command);
        releases = command.path("releases").asBoolean();
        explicit = releases || command.path("explicit").asBoolean();
        Properties properties = Clients.properties(command);
        properties.put("group.id", Clients.text(command, "group"));
        properties.put("client.id", Clients.text(command, "member"));
        properties.put("fetch.max.wait.ms", 200);
        properties.put("max.poll.records", 10);
        properties.put("share.acknowledgement.mode", explicit ? "explicit" : "implicit");
        consumer = new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    protected void take() {
        try (consumer) {
            consumer.subscribe(topics);
            while (!leaving) {
                consumer.poll(Duration.ofMillis(50)).forEach(this::acknowledge);
            }
            consumer.commitSync();
        }
    }

    private void acknowledge(ConsumerRecord<byte[], byte[]> record) {
        boolean isFirst = record.deliveryCount().orElse((short) 0) == 1;
        if (releases && isFirst) {
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
            return;
        }
        got(record);
        if (explicit) {
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
        }
    }
}
