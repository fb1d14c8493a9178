// Kafka's own record batches, asked line by line. Bytes are hex, "-" is null; a record is OFFSET:TIME:KEY:VALUE:HEADERS
// and its headers NAME=VALUE,NAME=VALUE. Every answer is one line, or "ERROR TEXT".
//
//   BUILD MAGIC CODEC TIMESTAMP_TYPE BASE_OFFSET APPEND_TIME PRODUCER EPOCH SEQUENCE TRANSACTIONAL CONTROL LEADER_EPOCH
//         DELETE_HORIZON RECORD...              the bytes of a batch
//   MARKER TYPE OFFSET TIME LEADER_EPOCH PRODUCER EPOCH COORDINATOR_EPOCH    the bytes of a transaction's end
//   READ BYTES                                  every batch and record, field by field
//   COMPACT TIME RETENTION MODULUS BYTES        the bytes without the records whose offsets MODULUS divides
//   DOWN MAGIC FIRST_OFFSET BYTES               the bytes in an older format
//   UP TIMESTAMP_TYPE TIME CODEC BYTES          the bytes as a broker appends them at offset 0
//
// Run: java -cp 'LIBS/*' Batches.java, where LIBS holds the jars of a Kafka broker. The package names are those of 3.9.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalLong;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

public class Batches {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
        }
    }

    private static String answer(String[] words) {
        try {
            switch (words[0]) {
                case "BUILD": return build(words);
                case "MARKER": return marker(words);
                case "READ": return read(words[1]);
                case "COMPACT": return compact(words);
                case "DOWN": return down(words);
                case "UP": return up(words);
                default: return "ERROR no such command";
            }
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "ERROR " + cause.toString().replace('\n', ' ');
        }
    }

    private static Compression compression(String codec) {
        return Compression.of(CompressionType.forId(Integer.parseInt(codec))).build();
    }

    private static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return "-";
        }
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HEX.formatHex(copy);
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HEX.parseHex(hex);
    }

    private static String build(String[] words) {
        byte magic = Byte.parseByte(words[1]);
        TimestampType type = words[3].equals("L") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        boolean control = words[10].equals("1");
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(1024), magic, compression(words[2]), type, Long.parseLong(words[4]),
            Long.parseLong(words[5]), Long.parseLong(words[6]), Short.parseShort(words[7]), Integer.parseInt(words[8]),
            words[9].equals("1"), control, Integer.parseInt(words[11]), Integer.MAX_VALUE, Long.parseLong(words[12]));
        for (String word : Arrays.asList(words).subList(13, words.length)) {
            String[] fields = word.split(":", -1);
            long offset = Long.parseLong(fields[0]);
            SimpleRecord record = new SimpleRecord(
                Long.parseLong(fields[1]), bytes(fields[2]), bytes(fields[3]), headers(fields[4]));
            if (control) {
                builder.appendControlRecordWithOffset(offset, record);
            } else {
                builder.appendWithOffset(offset, record);
            }
        }
        return hex(builder.build().buffer());
    }

    private static Header[] headers(String text) {
        List<Header> found = new ArrayList<>();
        if (!text.isEmpty()) {
            for (String pair : text.split(",", -1)) {
                String[] parts = pair.split("=", -1);
                found.add(new RecordHeader(new String(bytes(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
            }
        }
        return found.toArray(new Header[0]);
    }

    private static String marker(String[] words) {
        EndTransactionMarker marker = new EndTransactionMarker(
            ControlRecordType.valueOf(words[1]), Integer.parseInt(words[7]));
        return hex(MemoryRecords.withEndTransactionMarker(
            Long.parseLong(words[2]), Long.parseLong(words[3]), Integer.parseInt(words[4]), Long.parseLong(words[5]),
            Short.parseShort(words[6]), marker).buffer());
    }

    private static String read(String data) {
        StringBuilder out = new StringBuilder();
        for (RecordBatch batch : records(data).batches()) {
            batch.ensureValid();
            OptionalLong horizon = batch.deleteHorizonMs();
            boolean old = batch.magic() < 2;
            out.append(String.join(",", "B", text(batch.magic()), old ? "-" : text(batch.baseOffset()),
                text(batch.lastOffset()), text(batch.nextOffset()), text(batch.compressionType().id),
                batch.timestampType() == TimestampType.LOG_APPEND_TIME ? "L" : "C", text(batch.maxTimestamp()),
                text(batch.partitionLeaderEpoch()), text(batch.producerId()), text(batch.producerEpoch()),
                text(batch.baseSequence()), text(batch.lastSequence()), batch.isTransactional() ? "1" : "0",
                batch.isControlBatch() ? "1" : "0", horizon.isPresent() ? text(horizon.getAsLong()) : "-",
                old ? "-" : text(batch.countOrNull()), text(batch.sizeInBytes()))).append(' ');
            for (Record record : batch) {
                record.ensureValid();
                out.append(batch.isControlBatch() ? control(record) : record(record)).append(' ');
            }
        }
        return out.toString().trim();
    }

    private static String text(long number) {
        return Long.toString(number);
    }

    private static String record(Record record) {
        StringBuilder out = new StringBuilder();
        for (Header header : record.headers()) {
            byte[] value = header.value();
            out.append(out.length() == 0 ? "" : ",").append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)))
                .append('=').append(value == null ? "-" : HEX.formatHex(value));
        }
        return String.join(":", text(record.offset()), text(record.timestamp()), hex(record.key()), hex(record.value()),
            out);
    }

    private static String control(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        boolean ends = type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT;
        return String.join(":", text(record.offset()), text(record.timestamp()), type.name(),
            ends ? text(EndTransactionMarker.deserialize(record).coordinatorEpoch()) : "-1", hex(record.value()));
    }

    private static String compact(String[] words) throws Exception {
        long modulus = Long.parseLong(words[3]);
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(
            Long.parseLong(words[1]), Long.parseLong(words[2])) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(
                    batch.magic() < 2 ? BatchRetention.DELETE_EMPTY : BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return record.offset() % modulus != 0;
            }
        };
        MemoryRecords input = records(words[4]);
        ByteBuffer room = ByteBuffer.allocate(2 * input.sizeInBytes() + 4096);
        MemoryRecords.FilterResult result = null;
        for (Method method : MemoryRecords.class.getDeclaredMethods()) {
            if (method.getName().equals("filterTo") && (method.getModifiers() & 1) == 1) {
                Object[] given = method.getParameterCount() == 5
                    ? new Object[] {new TopicPartition("t", 0), filter, room, Integer.MAX_VALUE, BufferSupplier.NO_CACHING}
                    : new Object[] {filter, room, BufferSupplier.NO_CACHING, Integer.MAX_VALUE};
                result = (MemoryRecords.FilterResult) method.invoke(input, given);
            }
        }
        ByteBuffer made = result.outputBuffer();
        made.flip();
        return hex(made);
    }

    private static String down(String[] words) throws Exception {
        Object converted = MemoryRecords.class.getMethod("downConvert", byte.class, long.class, Time.class)
            .invoke(records(words[3]), Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM);
        return hex(((MemoryRecords) of(converted, "records")).buffer());
    }

    private static String up(String[] words) throws Exception {
        TimestampType type = words[1].equals("L") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        Compression codec = compression(words[3]);
        List<Object> given = new ArrayList<>(Arrays.asList(
            records(words[4]), new TopicPartition("t", 0), fixed(Long.parseLong(words[2])), codec.type(), codec, false,
            (byte) 2, type, Long.MAX_VALUE, Long.MAX_VALUE, -1, AppendOrigin.CLIENT));
        Constructor<?> constructor = LogValidator.class.getConstructors()[0];
        if (constructor.getParameterCount() == 13) {
            Class<?> version = Class.forName("org.apache.kafka.server.common.MetadataVersion");
            given.add(version.getMethod("latestProduction").invoke(null));
        }
        LogValidator validator = (LogValidator) constructor.newInstance(given.toArray());
        Object result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(0), new Uncounted(), BufferSupplier.NO_CACHING);
        return hex(((MemoryRecords) of(result, "validatedRecords")).buffer());
    }

    // A method or, in older versions, a public field.
    private static Object of(Object owner, String name) throws Exception {
        try {
            return owner.getClass().getMethod(name).invoke(owner);
        } catch (NoSuchMethodException older) {
            return owner.getClass().getField(name).get(owner);
        }
    }

    private static Time fixed(long now) {
        return (Time) java.lang.reflect.Proxy.newProxyInstance(
            Batches.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, given) -> method.getName().equals("milliseconds") ? now : method.invoke(Time.SYSTEM, given));
    }

    private static class Uncounted implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() {
        }

        @Override
        public void recordInvalidOffset() {
        }

        @Override
        public void recordInvalidSequence() {
        }

        @Override
        public void recordInvalidChecksums() {
        }

        @Override
        public void recordNoKeyCompactedTopic() {
        }
    }
}
