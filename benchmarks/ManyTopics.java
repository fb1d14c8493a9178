import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.config.ConfigResource;

/** What benchmarks.many_topics asks of Java's admin client: `java ManyTopics.java BOOTSTRAP TOPICS CONFIGS TURNS`. */
public final class ManyTopics {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final Admin admin;
    private final List<String> rows = new ArrayList<>();

    private ManyTopics(Admin admin) {
        this.admin = admin;
    }

    public static void main(String[] arguments) throws Exception {
        int topics = Integer.parseInt(arguments[1]);
        int configs = Integer.parseInt(arguments[2]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.describeCluster().nodes().get();
            ManyTopics run = new ManyTopics(admin);
            for (int turn = 0; turn < Integer.parseInt(arguments[3]); turn++) {
                run.all(topics, configs);
            }
            System.out.println("{\"turns\": [" + String.join(", ", run.rows) + "]}");
        }
    }

    private void all(int topics, int configs) throws Exception {
        List<String> found = new ArrayList<>();
        List<String> names = new ArrayList<>();
        found.add(measured("list", topics, () -> {
            Set<String> listed = admin.listTopics(new ListTopicsOptions()).names().get();
            names.addAll(listed);
            return listed;
        }));
        found.add(measured("describe", topics, () -> admin.describeTopics(names).allTopicNames().get().values()));
        List<ConfigResource> resources = names.subList(0, configs).stream()
                .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name)).toList();
        found.add(measured("configs", configs, () -> admin.describeConfigs(resources).all().get().values()));
        rows.add("{" + String.join(", ", found) + "}");
    }

    private String measured(String name, int expected, Callable<Collection<?>> call) throws Exception {
        double requests = total("request-total");
        double received = total("incoming-byte-total");
        long cpu = SYSTEM.getProcessCpuTime();
        long began = System.nanoTime();
        int size = call.call().size();
        long ended = System.nanoTime();
        if (size != expected) {
            throw new IllegalStateException(name + ": " + size + " and not " + expected);
        }
        return String.format("\"%s\": {\"wall_s\": %f, \"cpu_s\": %f, \"requests\": %.0f, \"received\": %.0f}", name,
                (ended - began) / 1e9, (SYSTEM.getProcessCpuTime() - cpu) / 1e9, total("request-total") - requests,
                total("incoming-byte-total") - received);
    }

    private double total(String name) {
        for (Metric metric : admin.metrics().values()) {
            if (metric.metricName().name().equals(name)
                    && metric.metricName().group().equals("admin-client-metrics")) {
                return (Double) metric.metricValue();
            }
        }
        throw new IllegalStateException("there is no metric " + name);
    }
}
