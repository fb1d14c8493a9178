import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/** Reads values of schemas, a JSON object on each line, and writes each value again. */
public final class AvroRoundTrip {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode given = JSON.readTree(line);
            ObjectNode said = JSON.createObjectNode();
            try {
                Schema schema = new Schema.Parser().parse(given.get("schema").asText());
                byte[] again = writtenAgain(schema, Base64.getDecoder().decode(given.get("value").asText()));
                said.put("value", Base64.getEncoder().encodeToString(again));
            } catch (Exception error) {
                said.put("error", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(said));
        }
        out.flush();
    }

    private static byte[] writtenAgain(Schema schema, byte[] value) throws Exception {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(value, null);
        Object read = new GenericDatumReader<Object>(schema).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalStateException("there are bytes behind the value");
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<Object>(schema).write(read, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    private AvroRoundTrip() {
    }
}
