import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import org.apache.avro.SchemaNormalization;

/** Reads pairs of schemas, a JSON object on each line, and writes what Java's Avro says of each. */
public final class AvroVerdicts {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode pair = JSON.readTree(line);
            ObjectNode said = JSON.createObjectNode();
            Schema reader = parsed(pair.get("reader").asText(), said, "reader");
            Schema writer = parsed(pair.get("writer").asText(), said, "writer");
            if (reader != null && writer != null) {
                try {
                    compared(reader, writer, said.putArray("found"));
                } catch (AvroRuntimeException error) {
                    said.put("comparisonError", String.valueOf(error.getMessage()));
                }
            }
            out.println(JSON.writeValueAsString(said));
        }
        out.flush();
    }

    private static Schema parsed(String text, ObjectNode said, String name) {
        try {
            Schema schema = new Schema.Parser().setValidateDefaults(true).parse(text);
            ObjectNode shown = said.putObject(name);
            shown.put("text", schema.toString());
            shown.put("form", SchemaNormalization.toParsingForm(schema));
            shown.put("fingerprint", Long.toHexString(SchemaNormalization.parsingFingerprint64(schema)));
            return schema;
        } catch (RuntimeException error) {
            said.put(name + "Error", String.valueOf(error.getMessage()));
            return null;
        }
    }

    private static void compared(Schema reader, Schema writer, ArrayNode found) {
        for (Incompatibility each : SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult()
                .getIncompatibilities()) {
            found.addArray().add(each.getType().name()).add(each.getLocation()).add(each.getMessage());
        }
    }

    private AvroVerdicts() {
    }
}
