package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	warmUp     = 2_000
	speedBatch = 1_000_000
	maxWaiting = 1_000_000
)

type speed struct {
	Records int     `json:"records"`
	Wall    float64 `json:"wall_s"`
	CPU     float64 `json:"cpu_s"`
}

// speedOf writes so many records of Size bytes as fast as it can, after a few to a topic named Source.
func speedOf(_ context.Context, c command) (any, error) {
	client, err := connect(c, kgo.ProducerBatchCompression(codecs[c.Codec]), kgo.ProducerBatchMaxBytes(speedBatch),
		kgo.ProducerLinger(20*time.Millisecond), kgo.MaxBufferedRecords(maxWaiting))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	value := bytes.Repeat([]byte("v"), c.Size)
	ctx := context.Background()
	send := func(topic string, count int) error {
		var failed atomic.Pointer[error]
		for range count {
			client.Produce(ctx, &kgo.Record{Topic: topic, Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
			})
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := failed.Load(); err != nil {
			return fmt.Errorf("a record was not stored: %w", *err)
		}
		return nil
	}
	if err := send(c.Source, warmUp); err != nil {
		return nil, err
	}
	began, used := time.Now(), cpuSeconds()
	if err := send(c.Topic, c.Count); err != nil {
		return nil, err
	}
	return speed{c.Count, time.Since(began).Seconds(), cpuSeconds() - used}, nil
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
