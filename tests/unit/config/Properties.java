import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** A line for each property of Java's three clients: who has it, its name, its type and its default. */
public class Properties {
    public static void main(String[] none) {
        Map<String, ConfigDef> tables = Map.of(
            "consumer", ConsumerConfig.configDef(), "producer", ProducerConfig.configDef(),
            "admin", AdminClientConfig.configDef());
        tables.forEach((role, table) -> table.configKeys().values().forEach(key -> System.out.println(
            String.join("\t", role, key.name, key.type.toString(), key.hasDefault() ? shown(key.defaultValue) : ""))));
    }

    private static String shown(Object value) {
        if (value == null)
            return "";
        if (value instanceof List<?> list)
            return String.join(",", list.stream().map(Properties::shown).toList());
        return value instanceof Class<?> kind ? kind.getName() : value.toString();
    }
}
