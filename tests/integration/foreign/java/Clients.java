// Java's Kafka clients, told what to do: one JSON command a line comes in, one JSON answer a line goes out.
//
// An answer is {"ok": result} or {"error": {"code": Kafka's number or null, "message": text}}.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Clients {
    static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int SHOWN_BYTES = 4096;
    private static final int LARGEST_REQUEST = 2 << 20;
    private static final Map<String, Member> MEMBERS = new HashMap<>();

    interface Operation {
        Object run(JsonNode command) throws Exception;
    }

    private static final Map<String, Operation> OPERATIONS = new HashMap<>(Map.of(
        "produce", Clients::produce, "consume", Clients::consume, "join", Clients::join,
        "assignment", command -> MEMBERS.get(text(command, "member")).assignment(),
        "received", command -> MEMBERS.get(text(command, "member")).received(),
        "errors", command -> MEMBERS.get(text(command, "member")).errors(), "leave", Clients::leave));

    public static void main(String[] arguments) throws Exception {
        OPERATIONS.putAll(Administration.OPERATIONS);
        OPERATIONS.putAll(Transactions.OPERATIONS);
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);  // where the clients' log goes
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(json.writeValueAsString(answer(json.readTree(line))));
            answers.flush();
        }
        System.exit(0);
    }

    private static Map<String, Object> answer(JsonNode command) {
        Map<String, Object> answer = new HashMap<>();
        try {
            Operation operation = OPERATIONS.get(text(command, "op"));
            if (operation == null) {
                throw new IllegalArgumentException("there is no operation " + text(command, "op"));
            }
            answer.put("ok", operation.run(command));
        } catch (Throwable error) {
            Throwable cause = error;
            while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                   && cause.getCause() != null) {
                cause = cause.getCause();
            }
            Errors known = Errors.forException(cause);
            Map<String, Object> told = new HashMap<>();
            told.put("code", known == Errors.UNKNOWN_SERVER_ERROR ? null : (int) known.code());
            told.put("message", cause.toString());
            answer.put("error", told);
        }
        return answer;
    }

    static String text(JsonNode command, String name) {
        return command.path(name).asText();
    }

    static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asText()));
        return found;
    }

    static Properties properties(JsonNode command) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", text(command, "servers"));
        properties.put("client.id", "java");
        return properties;
    }

    /** Writes records and answers with the offset of each, in the order given. */
    private static Object produce(JsonNode command) throws Exception {
        Properties properties = properties(command);
        properties.put("compression.type", text(command, "codec"));
        properties.put("acks", text(command, "acks"));
        properties.put("enable.idempotence", command.path("idempotent").asBoolean());
        properties.put("linger.ms", 20);
        properties.put("batch.size", LARGEST_REQUEST / 2);
        properties.put("max.request.size", LARGEST_REQUEST);
        properties.put("delivery.timeout.ms", (int) PATIENCE.toMillis());
        properties.put("request.timeout.ms", (int) PATIENCE.toMillis() / 2);
        properties.put("max.block.ms", PATIENCE.toMillis());
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode record : command.path("records")) {
                sent.add(producer.send(new ProducerRecord<>(
                    text(command, "topic"), record.path("partition").asInt(), record.path("timestamp").asLong(),
                    bytes(record.path("key")), bytes(record.path("value")), headers(record.path("headers")))));
            }
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    static byte[] bytes(JsonNode value) {
        return value.isNull() ? null : Base64.getDecoder().decode(value.asText());
    }

    private static List<Header> headers(JsonNode list) {
        List<Header> found = new ArrayList<>();
        list.forEach(each -> found.add(new RecordHeader(text(each, "name"), bytes(each.path("value")))));
        return found;
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode command, Map<String, Object> more) {
        Properties properties = properties(command);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", false);
        properties.put("fetch.max.wait.ms", 200);
        properties.put("isolation.level", "read_committed");
        properties.putAll(more);
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Reads so many records from the beginning: every partition alone, or as a group that commits at its end. */
    private static Object consume(JsonNode command) throws Exception {
        boolean grouped = command.hasNonNull("group");
        int count = command.path("count").asInt();
        List<String> topics = texts(command.path("topics"));
        List<Object> found = new ArrayList<>();
        Map<String, Object> more = grouped ? Map.of("group.id", text(command, "group")) : Map.of();
        try (var consumer = consumer(command, more)) {
            if (grouped) {
                consumer.subscribe(topics);
            } else {
                List<TopicPartition> all = new ArrayList<>();
                for (String topic : topics) {
                    consumer.partitionsFor(topic).forEach(each -> all.add(new TopicPartition(topic, each.partition())));
                }
                consumer.assign(all);
                consumer.seekToBeginning(all);
            }
            long end = System.nanoTime() + PATIENCE.toNanos();
            while (found.size() < count) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException(found.size() + " records of " + count);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    found.add(shown(record));
                }
            }
            if (grouped) {
                consumer.commitSync();
            }
        }
        return found;
    }

    private static Map<String, Object> shown(ConsumerRecord<byte[], byte[]> record) throws Exception {
        Map<String, Object> found = new HashMap<>();
        byte[] value = record.value();
        found.put("topic", record.topic());
        found.put("partition", record.partition());
        found.put("offset", record.offset());
        found.put("timestamp", record.timestamp());
        found.put("key", record.key());
        found.put("value", value);
        List<Map<String, Object>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            Map<String, Object> pair = new HashMap<>();
            pair.put("name", header.key());
            pair.put("value", header.value());
            headers.add(pair);
        }
        found.put("headers", headers);
        if (value != null && value.length > SHOWN_BYTES) {
            String sha256 = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(value));
            found.put("value", null);
            found.put("digest", Map.of("size", value.length, "sha256", sha256));
        }
        return found;
    }

    /** Begins to take part in a group. */
    private static Object join(JsonNode command) {
        Member member = Member.of(command);
        MEMBERS.put(text(command, "member"), member);
        member.start();
        return null;
    }

    /** Commits and says goodbye to the group; everything that the member has read. */
    private static Object leave(JsonNode command) throws Exception {
        return MEMBERS.remove(text(command, "member")).leave();
    }
}
