// Kafka's own generated codecs, asked line by line. In: "NAME VERSION HEX", the bytes of a message. Out: "HEX JSON", the
// same message written again by Java and what Java read, or "ERROR TEXT". "API KEY" answers "NAME LOWEST HIGHEST".
//
// Run: java -cp 'LIBS/*' Conformance.java, where LIBS holds kafka-clients and jackson-databind.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

public class Conformance {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(words[0].equals("API") ? api(Integer.parseInt(words[1])) : answer(words));
        }
    }

    private static String api(int key) {
        for (ApiKeys api : ApiKeys.values()) {
            if (api.id == key) {
                return api.name + " " + api.messageType.lowestSupportedVersion() + " " + api.latestVersion(false);
            }
        }
        return "- 0 -1";
    }

    private static String answer(String[] words) {
        try {
            short version = Short.parseShort(words[1]);
            Class<?> data = suffixed(words[0], "Data", "");
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            Message message = (Message) data.getConstructor(Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(bytes), version);
            if (bytes.hasRemaining()) {
                return "ERROR " + bytes.remaining() + " bytes are left over";
            }
            return write(message, version) + " " + json(data, message, version);
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "ERROR " + cause.toString().replace('\n', ' ');
        }
    }

    private static String write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        return HexFormat.of().formatHex(out.array(), 0, out.position());
    }

    private static Object json(Class<?> data, Message message, short version) throws Exception {
        return Class.forName(data.getName() + "JsonConverter").getMethod("write", data, short.class)
            .invoke(null, message, version);
    }

    private static Class<?> suffixed(String name, String... suffixes) throws ClassNotFoundException {
        for (String suffix : suffixes) {
            try {
                return Class.forName(PACKAGE + name + suffix);
            } catch (ClassNotFoundException next) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }
}
