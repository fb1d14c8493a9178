package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// member is one of a group, polled in a goroutine of its own until it leaves.
type member struct {
	client *kgo.Client
	ended  chan struct{}
	lock   sync.Mutex
	held   map[string]map[int32]bool
	values [][]byte
	failed error
}

var members = map[string]*member{}

var balancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// join begins to take part in a group.
func join(_ context.Context, c command) (any, error) {
	m := &member{held: map[string]map[int32]bool{}, ended: make(chan struct{})}
	client, err := connect(c, kgo.ClientID(c.Member), kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(balancers[c.Assignor]),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(m.gain), kgo.OnPartitionsRevoked(m.lose), kgo.OnPartitionsLost(m.drop))
	if err != nil {
		return nil, err
	}
	m.client = client
	members[c.Member] = m
	go m.run()
	return nil, nil
}

func (m *member) run() {
	defer close(m.ended)
	for {
		fetched := m.client.PollFetches(context.Background())
		if fetched.IsClientClosed() {
			return
		}
		m.lock.Lock()
		for _, failed := range fetched.Errors() {
			m.failed = fmt.Errorf("%s[%d]: %w", failed.Topic, failed.Partition, failed.Err)
		}
		fetched.EachRecord(func(r *kgo.Record) { m.values = append(m.values, r.Value) })
		m.lock.Unlock()
		m.client.MarkCommitRecords(fetched.Records()...)
		m.client.AllowRebalance()
	}
}

func (m *member) gain(_ context.Context, _ *kgo.Client, gained map[string][]int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range gained {
		for _, partition := range partitions {
			if m.held[topic] == nil {
				m.held[topic] = map[int32]bool{}
			}
			m.held[topic][partition] = true
		}
	}
}

// lose commits what was read, then lets the partitions go.
func (m *member) lose(ctx context.Context, client *kgo.Client, lost map[string][]int32) {
	err := client.CommitMarkedOffsets(ctx)
	m.drop(ctx, client, lost)
	m.lock.Lock()
	defer m.lock.Unlock()
	if err != nil {
		m.failed = err
	}
}

func (m *member) drop(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range lost {
		for _, partition := range partitions {
			delete(m.held[topic], partition)
		}
	}
}

// assignment answers with the partitions that a member holds now.
func assignment(_ context.Context, c command) (any, error) {
	m := members[c.Member]
	m.lock.Lock()
	defer m.lock.Unlock()
	found := [][2]any{}
	for _, topic := range slices.Sorted(maps.Keys(m.held)) {
		for _, partition := range slices.Sorted(maps.Keys(m.held[topic])) {
			found = append(found, [2]any{topic, partition})
		}
	}
	return found, m.failed
}

// received answers with the values that a member has read.
func received(_ context.Context, c command) (any, error) {
	m := members[c.Member]
	m.lock.Lock()
	defer m.lock.Unlock()
	return append([][]byte{}, m.values...), m.failed
}

// leave commits and says goodbye to the group; everything that the member has read.
func leave(ctx context.Context, c command) (any, error) {
	m := members[c.Member]
	delete(members, c.Member)
	err := m.client.CommitMarkedOffsets(ctx)
	m.client.CloseAllowingRebalance()
	<-m.ended
	return append([][]byte{}, m.values...), err
}
