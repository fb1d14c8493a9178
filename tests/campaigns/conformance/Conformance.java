// Kafka's own codecs, asked line by line; each line in has one line out.
//
//   ECHO NAME VERSION HEX    the bytes of a message: "HEX JSON", what Java writes again and what it has read
//   MAKE NAME VERSION SEED   "HEX JSON" of a message whose fields Java has filled by chance, unknown tags included
//   ERRORS                   "CODE NAME RETRIABLE MESSAGE", all in one line between tabs
//
// An answer may also be "ERROR TEXT". Messages are found by reflection, so that one class file serves every release.

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeSet;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class Conformance {
    private static final String PACKAGE = "org.apache.kafka.common.message.";
    private static final String CLIENT = "org.apache.kafka.clients.consumer.";
    private static final String TEXT = "abcXYZ-._ \u00e4\u00df\u20ac\u6f22";
    private static final Map<String, Method> SETTERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(answer(line.split(" ", -1)));
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static String answer(String[] words) {
        try {
            if (words[0].equals("ERRORS")) {
                return errors();
            }
            short version = Short.parseShort(words[2]);
            boolean echo = words[0].equals("ECHO");
            if (words[1].endsWith("StickyAssignorUserData")) {
                return handWritten(words[1], version, echo, words[3]);
            }
            Class<?> data = dataClass(words[1]);
            Message message = echo ? read(data, version, words[3]) : make(data, version, Long.parseLong(words[3]));
            return write(message, version) + " " + json(data, message, version);
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "ERROR " + cause.toString().replace('\n', ' ');
        }
    }

    private static String errors() {
        StringJoiner all = new StringJoiner("\t");
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            all.add(error.code() + " " + error.name() + " " + retriable + " " + error.message());
        }
        return all.toString().replace('\n', ' ');
    }

    // Messages that Kafka generates

    private static Class<?> dataClass(String name) throws ClassNotFoundException {
        try {
            return Class.forName(PACKAGE + name + "Data");
        } catch (ClassNotFoundException notAnApi) {
            return Class.forName(PACKAGE + name);
        }
    }

    private static Message read(Class<?> data, short version, String hex) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Message message = (Message) data.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            throw new IllegalArgumentException(bytes.remaining() + " bytes are left over");
        }
        return message;
    }

    private static String write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        if (out.hasRemaining()) {
            throw new IllegalStateException("size() said " + out.limit() + ", written were " + out.position());
        }
        return HexFormat.of().formatHex(out.array());
    }

    private static Object json(Class<?> data, Message message, short version) throws Exception {
        return Class.forName(data.getName() + "JsonConverter").getMethod("write", data, short.class)
            .invoke(null, message, version);
    }

    // Values by chance, for the fields that a version has

    private static Message make(Class<?> data, short version, long seed) throws Exception {
        Schema schema = ((Schema[]) data.getField("SCHEMAS").get(null))[version];
        return (Message) new Conformance(seed).filled(data, schema);
    }

    private final Random random;
    private final boolean big;  // one message in sixteen has long strings and lists
    private int budget = 100_000;

    private Conformance(long seed) {
        random = new Random(seed);
        for (int i = 0; i < 8; i++) {
            random.nextInt();  // the first draws of neighbouring seeds are alike
        }
        big = random.nextInt(16) == 0;
    }

    private Object filled(Class<?> type, Schema schema) throws Exception {
        Object struct = type.getConstructor().newInstance();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields tagged) {
                Map<Integer, org.apache.kafka.common.protocol.types.Field> known = knownTags(tagged);
                for (org.apache.kafka.common.protocol.types.Field tag : known.values()) {
                    set(struct, tag.name, tag.type);
                }
                addUnknown(((Message) struct).unknownTaggedFields(), known.keySet());
            } else {
                set(struct, field.def.name, field.def.type);
            }
        }
        return struct;
    }

    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> knownTags(TaggedFields tagged)
            throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");  // has a method only since Kafka 4
        fields.setAccessible(true);
        return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(tagged);
    }

    private void set(Object struct, String name, Type type) throws Exception {
        // Java's own default of records is null, even where that is not allowed.
        if (random.nextInt(8) != 0 || type.toString().endsWith("RECORDS")) {
            Method setter = setter(struct.getClass(), name);
            Class<?> parameter = setter.getParameterTypes()[0];
            boolean isNull = mayBeNull(type, name) && random.nextInt(5) == 0;
            setter.invoke(struct, isNull ? null : value(type, parameter, setter.getGenericParameterTypes()[0]));
        }
    }

    private static boolean mayBeNull(Type type, String name) {
        if (!type.toString().endsWith("RECORDS")) {
            return type.isNullable();
        }
        try {
            Type.class.getField("NULLABLE_RECORDS");
            return type.toString().contains("NULLABLE");
        } catch (NoSuchFieldException beforeKafka43) {  // when all record types said that they allow null
            return !name.equals("unaligned_records");
        }
    }

    private static Method setter(Class<?> type, String name) {
        return SETTERS.computeIfAbsent(type.getName() + " " + name, key -> {
            String wanted = "set" + name.replace("_", "");
            for (Method method : type.getMethods()) {
                if (method.getName().equalsIgnoreCase(wanted) && method.getParameterCount() == 1) {
                    return method;
                }
            }
            throw new IllegalStateException(type + " has no " + wanted);
        });
    }

    private void addUnknown(List<RawTaggedField> unknown, Set<Integer> known) {
        if (random.nextInt(4) == 0) {
            TreeSet<Integer> tags = new TreeSet<>();
            for (int i = random.nextInt(4); i >= 0; i--) {
                tags.add(random.nextInt(2) == 0 ? random.nextInt(12) : random.nextInt(Integer.MAX_VALUE));
            }
            tags.removeAll(known);
            for (int tag : tags) {
                unknown.add(new RawTaggedField(tag, bytes()));
            }
        }
    }

    private Object value(Type type, Class<?> parameter, java.lang.reflect.Type generic) throws Exception {
        if (type.isArray()) {
            return array(type.arrayElementType().get(), parameter, generic);
        }
        if (type instanceof Schema schema) {
            return filled(parameter, schema);
        }
        if (parameter == ByteBuffer.class) {
            return ByteBuffer.wrap(bytes());
        }
        if (parameter == byte[].class) {
            return bytes();
        }
        return parameter == String.class ? text() : scalar(type.toString(), parameter);
    }

    private Object scalar(String name, Class<?> type) throws Exception {
        boolean limit = random.nextInt(3) == 0;
        if (type == boolean.class) {
            return random.nextBoolean();
        } else if (type == byte.class || type == Byte.class) {
            return limit ? (random.nextBoolean() ? Byte.MAX_VALUE : Byte.MIN_VALUE) : (byte) random.nextInt();
        } else if (type == short.class || type == Short.class) {
            return limit ? (random.nextBoolean() ? Short.MAX_VALUE : Short.MIN_VALUE) : (short) random.nextInt();
        } else if (name.equals("UINT16")) {
            return limit ? (random.nextBoolean() ? 0xffff : 0) : random.nextInt(0x10000);
        } else if (type == int.class || type == Integer.class) {
            return limit ? (random.nextBoolean() ? Integer.MAX_VALUE : Integer.MIN_VALUE) : random.nextInt();
        } else if (type == long.class || type == Long.class) {
            return limit ? (random.nextBoolean() ? Long.MAX_VALUE : Long.MIN_VALUE) : random.nextLong();
        } else if (type == double.class) {
            double[] odd = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0, Double.MIN_VALUE};
            return limit ? odd[random.nextInt(odd.length)] : random.nextGaussian();
        } else if (type == Uuid.class) {
            return limit ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
        } else if (name.endsWith("RECORDS")) {
            return records();
        }
        throw new IllegalStateException("no values of type " + name + " for " + type);
    }

    private Object records() throws Exception {
        Class<?> type;
        try {
            type = Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException beforeItMoved) {
            type = Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
        return type.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes()));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object array(Type item, Class<?> parameter, java.lang.reflect.Type generic) throws Exception {
        boolean isList = parameter == List.class;
        java.lang.reflect.Type itemType = ((ParameterizedType) (isList ? generic : parameter.getGenericSuperclass()))
            .getActualTypeArguments()[0];
        Collection items = isList ? new ArrayList<>() : (Collection) parameter.getConstructor().newInstance();
        int count = random.nextInt(4);
        if (big && budget > 1000 && random.nextInt(3) == 0) {
            count = item instanceof Schema ? 130 : 130 + random.nextInt(200);
        }
        for (; count > 0; count--) {
            budget -= 8;
            items.add(value(item, (Class<?>) itemType, itemType));
            if (budget < 0) {
                break;
            }
        }
        return items;
    }

    private int length() {
        int length = random.nextInt(12);
        if (big && budget > 0) {
            int[] lengths = {126, 127, 128, 129, 16_382, 16_383, 16_384, 20_000, 32_767};
            length = lengths[random.nextInt(lengths.length)];
        }
        budget -= length;
        return length;
    }

    private byte[] bytes() {
        byte[] bytes = new byte[length()];
        random.nextBytes(bytes);
        return bytes;
    }

    private String text() {
        int length = length();
        StringBuilder text = new StringBuilder();
        while (length > 32) {  // many letters at once; four bytes in UTF-8
            text.append(length % 2 == 0 ? "\ud83d\ude00" : "abcd");
            length -= 4;
        }
        for (; length > 0; length--) {
            text.append(TEXT.charAt(random.nextInt(budget > 0 ? TEXT.length() : 10)));
        }
        return text.toString().getBytes(StandardCharsets.UTF_8).length > 32_767 ? "too long" : text.toString();
    }

    // What Java's sticky assignors write by hand

    private static String handWritten(String name, short version, boolean echo, String word) throws Exception {
        String assignor = name.replace("UserData", "");
        String prefix = assignor.startsWith("Cooperative") ? "COOPERATIVE_STICKY" : "STICKY";
        Field field = Class.forName(CLIENT + assignor).getDeclaredField(prefix + "_ASSIGNOR_USER_DATA_V" + version);
        field.setAccessible(true);
        Schema schema = (Schema) field.get(null);
        Struct struct;
        if (echo) {
            ByteBuffer in = ByteBuffer.wrap(HexFormat.of().parseHex(word));
            struct = schema.read(in);
            if (in.hasRemaining()) {
                throw new IllegalArgumentException(in.remaining() + " bytes are left over");
            }
        } else {
            struct = new Conformance(Long.parseLong(word)).filled(schema);
        }
        ByteBuffer out = ByteBuffer.allocate(schema.sizeOf(struct));
        schema.write(out, struct);
        return HexFormat.of().formatHex(out.array()) + " " + json(struct);
    }

    private Struct filled(Schema schema) throws Exception {
        Struct struct = new Struct(schema);
        for (BoundField field : schema.fields()) {
            Type type = field.def.type;
            if (type.isArray()) {
                Object[] items = new Object[random.nextInt(big ? 200 : 4)];
                for (int i = 0; i < items.length; i++) {
                    Type item = type.arrayElementType().get();
                    items[i] = item instanceof Schema inner ? filled(inner) : random.nextInt();
                }
                struct.set(field, items);
            } else {
                struct.set(field, type.toString().equals("STRING") ? text() : scalar(type.toString(), int.class));
            }
        }
        return struct;
    }

    private static String json(Object value) {
        if (value instanceof Struct struct) {
            StringJoiner fields = new StringJoiner(",", "{", "}");
            for (BoundField field : struct.schema().fields()) {
                fields.add('"' + field.def.name + "\":" + json(struct.get(field)));
            }
            return fields.toString();
        } else if (value instanceof Object[] items) {
            StringJoiner list = new StringJoiner(",", "[", "]");
            for (Object item : items) {
                list.add(json(item));
            }
            return list.toString();
        }
        return value instanceof String ? '"' + value.toString() + '"' : value.toString();
    }
}
