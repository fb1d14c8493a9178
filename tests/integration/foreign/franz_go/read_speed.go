package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const readBytes = 10_000_000

// readSpeedOf reads so many records as fast as it can, after a few of a topic named Source.
func readSpeedOf(ctx context.Context, c command) (any, error) {
	read := func(topic string, count int) (speed, error) {
		from := make(map[int32]kgo.Offset)
		for number := range c.Partitions {
			from[number] = kgo.NewOffset().AtStart()
		}
		client, err := connect(c, kgo.FetchMaxPartitionBytes(readBytes), kgo.FetchMaxBytes(5*readBytes),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
		if err != nil {
			return speed{}, err
		}
		defer client.Close()
		began, used := time.Now(), cpuSeconds()
		for left := count; left > 0; {
			found := client.PollFetches(ctx)
			if err := found.Err(); err != nil {
				return speed{}, err
			}
			left -= found.NumRecords()
		}
		return speed{count, time.Since(began).Seconds(), cpuSeconds() - used}, nil
	}
	if _, err := read(c.Source, warmUp); err != nil {
		return nil, err
	}
	return read(c.Topic, c.Count)
}
