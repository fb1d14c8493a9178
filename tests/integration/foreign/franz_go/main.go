// A Kafka client of franz-go's that is told what to do: one JSON command a line comes in, one JSON answer a line goes out.
//
// An answer is {"ok": result} or {"error": {"code": Kafka's number or null, "message": text}}.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const (
	largestLine  = 64 << 20
	largestBatch = 1_040_000
	shownBytes   = 4096
	patience     = 30 * time.Second
)

// command has the arguments of every operation; each takes those it needs.
type command struct {
	Op         string            `json:"op"`
	Servers    string            `json:"servers"`
	Version    string            `json:"version"`
	Topic      string            `json:"topic"`
	Topics     []string          `json:"topics"`
	Group      string            `json:"group"`
	Member     string            `json:"member"`
	Assignor   string            `json:"assignor"`
	Codec      string            `json:"codec"`
	Acks       string            `json:"acks"`
	Idempotent bool              `json:"idempotent"`
	Records    []record          `json:"records"`
	Count      int               `json:"count"`
	Size       int               `json:"size"`
	Partitions int32             `json:"partitions"`
	Replicas   int16             `json:"replicas"`
	Configs    map[string]string `json:"configs"`
	Set        map[string]string `json:"set"`
	Delete     []string          `json:"delete"`
	Append     map[string]string `json:"append"`
	Subtract   map[string]string `json:"subtract"`
	Offsets    map[int32]int64   `json:"offsets"`
	At         string            `json:"at"`
	Source     string            `json:"source"`
	Name       string            `json:"transactional_id"`
	Commit     bool              `json:"commit"`
}

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

type record struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Digest    *digest  `json:"digest,omitempty"`
}

// digest stands for a value that is too long to be shown.
type digest struct {
	Size   int    `json:"size"`
	Sha256 string `json:"sha256"`
}

type operation func(ctx context.Context, c command) (any, error)

var operations = map[string]operation{
	"produce": produce, "consume": consume,
	"join": join, "assignment": assignment, "received": received, "leave": leave,
	"create_topic": createTopic, "list_topics": listTopics, "describe_topic": describeTopic,
	"delete_topic": deleteTopic, "create_partitions": createPartitions, "describe_configs": describeConfigs,
	"alter_configs": alterConfigs, "replace_configs": replaceConfigs, "delete_records": deleteRecords,
	"list_offsets": listOffsets, "describe_cluster": describeCluster, "list_groups": listGroups,
	"describe_group": describeGroup, "delete_group": deleteGroup, "fetch_offsets": fetchOffsets,
	"alter_offsets": alterOffsets, "delete_offsets": deleteOffsets, "versions": versions,
	"transact": transact, "copy": copyRecords, "speed": speedOf, "read_speed": readSpeedOf,
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, largestLine)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := answers.Encode(answer(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func answer(line []byte) map[string]any {
	var c command
	err := json.Unmarshal(line, &c)
	run, known := operations[c.Op]
	if err == nil && !known {
		err = fmt.Errorf("there is no operation %q", c.Op)
	}
	var result any
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		result, err = run(ctx, c)
	}
	if err != nil {
		return map[string]any{"error": map[string]any{"code": codeOf(err), "message": err.Error()}}
	}
	return map[string]any{"ok": result}
}

func codeOf(err error) any {
	var refusal *kerr.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return nil
}

// versions names the releases of Kafka that the client can be held to.
func versions(context.Context, command) (any, error) { return kversion.VersionStrings(), nil }

func options(c command, more ...kgo.Opt) ([]kgo.Opt, error) {
	all := append([]kgo.Opt{kgo.SeedBrokers(strings.Split(c.Servers, ",")...), kgo.ClientID("franz-go"), kgo.RetryTimeout(patience / 2)}, more...)
	if c.Version != "" {
		most := kversion.FromString(c.Version)
		if most == nil {
			return nil, fmt.Errorf("there is no version %q", c.Version)
		}
		all = append(all, kgo.MaxVersions(most))
	}
	return all, nil
}

func connect(c command, more ...kgo.Opt) (*kgo.Client, error) {
	all, err := options(c, more...)
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(all...)
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

// produce writes records and answers with the offset of each, in the order given.
func produce(ctx context.Context, c command) (any, error) {
	how := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[c.Codec]), kgo.RequiredAcks(acks[c.Acks]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(largestBatch),
		kgo.ProducerLinger(20 * time.Millisecond), kgo.RecordRetries(5),
	}
	if !c.Idempotent {
		how = append(how, kgo.DisableIdempotentWrite())
	}
	client, err := connect(c, how...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(c.Records))
	for i, r := range c.Records {
		records[i] = &kgo.Record{Topic: c.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value,
			Timestamp: time.UnixMilli(r.Timestamp)}
		for _, h := range r.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
	}
	offsets := make(map[*kgo.Record]int64, len(records))
	for _, done := range client.ProduceSync(ctx, records...) {
		if done.Err != nil {
			return nil, done.Err
		}
		offsets[done.Record] = done.Record.Offset
	}
	stored := make([]int64, len(records))
	for i, r := range records {
		stored[i] = offsets[r]
	}
	return stored, nil
}

// consume reads so many records from the beginning: every partition alone, or as a group that commits at its end.
func consume(ctx context.Context, c command) (any, error) {
	how := []kgo.Opt{kgo.ConsumeTopics(c.Topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.FetchIsolationLevel(kgo.ReadCommitted())}
	if c.Group != "" {
		how = append(how, kgo.ConsumerGroup(c.Group), kgo.DisableAutoCommit(), kgo.Balancers(kgo.RangeBalancer()))
	}
	client, err := connect(c, how...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found := make([]record, 0, c.Count)
	for len(found) < c.Count {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			return nil, fmt.Errorf("%d records of %d: %w", len(found), c.Count, err)
		}
		for _, failed := range fetched.Errors() {
			return nil, fmt.Errorf("%s[%d]: %w", failed.Topic, failed.Partition, failed.Err)
		}
		fetched.EachRecord(func(r *kgo.Record) { found = append(found, shown(r)) })
	}
	if c.Group != "" {
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func shown(r *kgo.Record) record {
	s := record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
		Timestamp: r.Timestamp.UnixMilli(), Headers: []header{}}
	for _, h := range r.Headers {
		s.Headers = append(s.Headers, header{h.Key, h.Value})
	}
	if len(r.Value) > shownBytes {
		sum := sha256.Sum256(r.Value)
		s.Value, s.Digest = nil, &digest{len(r.Value), hex.EncodeToString(sum[:])}
	}
	return s
}
