package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func transactional(c command) []kgo.Opt {
	return []kgo.Opt{kgo.TransactionalID(c.Name), kgo.RecordPartitioner(kgo.ManualPartitioner())}
}

// transact writes records in a transaction, and ends it.
func transact(ctx context.Context, c command) (any, error) {
	client, err := connect(c, transactional(c)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return nil, err
	}
	records := make([]*kgo.Record, len(c.Records))
	for i, r := range c.Records {
		records[i] = &kgo.Record{Topic: c.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value,
			Timestamp: time.UnixMilli(r.Timestamp)}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	return nil, client.EndTransaction(ctx, kgo.TransactionEndTry(c.Commit))
}

// copyRecords writes what a group reads to another topic, with the group's offsets, in one transaction.
func copyRecords(ctx context.Context, c command) (any, error) {
	how := append(transactional(c), kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets())
	all, err := options(c, how...)
	if err != nil {
		return nil, err
	}
	session, err := kgo.NewGroupTransactSession(all...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return nil, err
	}
	for copied := 0; copied < c.Count; {
		fetched := session.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, fmt.Errorf("%d records of %d: %w", copied, c.Count, err)
		}
		records := fetched.Records()
		for i, r := range records {
			records[i] = &kgo.Record{Topic: c.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value}
		}
		if err := session.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return nil, err
		}
		copied += len(records)
	}
	committed, err := session.End(ctx, kgo.TransactionEndTry(c.Commit))
	if err == nil && committed != c.Commit {
		err = errors.New("the transaction was not ended as it should")
	}
	return nil, err
}
