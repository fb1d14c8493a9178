// What Java's transactional producer is told to do.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class Transactions {
    static final Map<String, Clients.Operation> OPERATIONS = Map.of(
        "transact", Transactions::transact, "copy", Transactions::copy);

    private Transactions() {
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode command) {
        Properties properties = Clients.properties(command);
        properties.put("transactional.id", Clients.text(command, "transactional_id"));
        properties.put("max.block.ms", Clients.PATIENCE.toMillis());
        var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, JsonNode command) {
        producer.flush();  // so that there is something to leave out when it is aborted
        if (command.path("commit").asBoolean()) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    /** Writes records in a transaction, and ends it. */
    private static Object transact(JsonNode command) {
        try (var producer = producer(command)) {
            producer.beginTransaction();
            for (JsonNode record : command.path("records")) {
                producer.send(new ProducerRecord<>(
                    Clients.text(command, "topic"), record.path("partition").asInt(), record.path("timestamp").asLong(),
                    Clients.bytes(record.path("key")), Clients.bytes(record.path("value"))));
            }
            end(producer, command);
        }
        return null;
    }

    /** Writes what a group reads to another topic, with the group's offsets, in one transaction. */
    private static Object copy(JsonNode command) {
        try (var consumer = Clients.consumer(command, Map.of("group.id", Clients.text(command, "group")));
             var producer = producer(command)) {
            consumer.subscribe(List.of(Clients.text(command, "source")));
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            long end = System.nanoTime() + Clients.PATIENCE.toNanos();
            for (int copied = 0; copied < command.path("count").asInt();) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException(copied + " records of " + command.path("count").asInt());
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    producer.send(new ProducerRecord<>(
                        Clients.text(command, "topic"), record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                                new OffsetAndMetadata(record.offset() + 1));
                    copied++;
                }
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            end(producer, command);
        }
        return null;
    }
}
