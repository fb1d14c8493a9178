// A member of a group, polled in a thread of its own until it leaves.

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

abstract class Member extends Thread {
    protected final List<String> topics;
    protected volatile boolean leaving;
    private final List<byte[]> values = new ArrayList<>();
    private List<TopicPartition> held = List.of();
    private final Set<Integer> told = new LinkedHashSet<>();
    private RuntimeException failed;

    protected Member(JsonNode command) {
        setDaemon(true);
        topics = Clients.texts(command.path("topics"));
    }

    static Member of(JsonNode command) {
        return Clients.text(command, "protocol").equals("share") ? new ShareMember(command) : new GroupMember(command);
    }

    /** Reads until it is to leave, and says goodbye. */
    protected abstract void take();

    @Override
    public void run() {
        try {
            take();
        } catch (RuntimeException error) {
            synchronized (this) {
                failed = error;
            }
        }
    }

    protected synchronized void got(ConsumerRecord<byte[], byte[]> record) {
        values.add(record.value());
    }

    protected synchronized void holds(Iterable<TopicPartition> partitions) {
        List<TopicPartition> all = new ArrayList<>();
        partitions.forEach(all::add);
        held = all;
    }

    synchronized List<Object> assignment() {
        complain();
        return held.stream().<Object>map(each -> List.of(each.topic(), each.partition())).toList();
    }

    synchronized List<byte[]> received() {
        complain();
        return List.copyOf(values);
    }

    /** The codes of what it was refused. It is not told as a failure of the next operation then. */
    synchronized List<Integer> errors() {
        if (failed != null) {
            told.add((int) Errors.forException(failed).code());
            failed = null;
        }
        return List.copyOf(told);
    }

    List<byte[]> leave() throws InterruptedException {
        leaving = true;
        join(Clients.PATIENCE.toMillis());
        return received();
    }

    private void complain() {
        if (failed != null) {
            throw failed;
        }
    }
}
