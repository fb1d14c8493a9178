import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Where Java puts keys: for each line of hexadecimal digits the partitions for the counts that are its arguments. */
public class Partitions {
    public static void main(String[] counts) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintWriter out = new PrintWriter(System.out);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            byte[] key = HexFormat.of().parseHex(line);
            StringBuilder answer = new StringBuilder();
            for (String count : counts) {
                int byHash = Utils.toPositive(Utils.murmur2(key)) % Integer.parseInt(count);
                int byDefault = BuiltInPartitioner.partitionForKey(key, Integer.parseInt(count));
                if (byHash != byDefault)
                    throw new IllegalStateException("Java disagrees with itself on " + line);
                answer.append(byDefault).append(' ');
            }
            out.println(answer.toString().trim());
        }
        out.flush();
    }
}
