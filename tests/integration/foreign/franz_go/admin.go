package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var admins = map[[2]string]*kadm.Client{}

// admin is the one client for a cluster and a version; it stays open, as a program's would.
func admin(c command) (*kadm.Client, error) {
	key := [2]string{c.Servers, c.Version}
	if admins[key] == nil {
		client, err := connect(c, kgo.MetadataMinAge(10_000_000)) // 10 ms, to see at once what was changed
		if err != nil {
			return nil, err
		}
		admins[key] = kadm.NewClient(client)
	}
	return admins[key], nil
}

func values(configs map[string]string) map[string]*string {
	found := make(map[string]*string, len(configs))
	for name, value := range configs {
		found[name] = &value
	}
	return found
}

func createTopic(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	_, err = client.CreateTopic(ctx, c.Partitions, c.Replicas, values(c.Configs), c.Topic)
	return nil, err
}

func listTopics(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	found, err := client.ListTopics(ctx)
	return found.Names(), err
}

func describeTopic(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	found, err := client.ListTopicsWithInternal(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	topic := found[c.Topic]
	partitions := []any{}
	for _, p := range topic.Partitions.Sorted() {
		partitions = append(partitions, map[string]any{
			"partition": p.Partition, "leader": p.Leader, "replicas": p.Replicas, "isr": p.ISR})
	}
	return map[string]any{"internal": topic.IsInternal, "partitions": partitions}, topic.Err
}

func deleteTopic(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	_, err = client.DeleteTopic(ctx, c.Topic)
	return nil, err
}

func createPartitions(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	done, err := client.UpdatePartitions(ctx, int(c.Partitions), c.Topic)
	if err != nil {
		return nil, err
	}
	return nil, done[c.Topic].Err
}

func describeConfigs(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	all, err := client.DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, each := range all {
		if each.Err != nil {
			return nil, each.Err
		}
		for _, config := range each.Configs {
			found[config.Key] = map[string]any{
				"value": config.Value, "source": int(config.Source), "sensitive": config.Sensitive}
		}
	}
	return found, nil
}

func alterConfigs(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	changes := []kadm.AlterConfig{}
	add := func(op kadm.IncrementalOp, configs map[string]string) {
		for name, value := range values(configs) {
			changes = append(changes, kadm.AlterConfig{Op: op, Name: name, Value: value})
		}
	}
	add(kadm.SetConfig, c.Set)
	add(kadm.AppendConfig, c.Append)
	add(kadm.SubtractConfig, c.Subtract)
	for _, name := range c.Delete {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	return altered(client.AlterTopicConfigs(ctx, changes, c.Topic))
}

func replaceConfigs(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	changes := []kadm.AlterConfig{}
	for name, value := range values(c.Configs) {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: value})
	}
	return altered(client.AlterTopicConfigsState(ctx, changes, c.Topic))
}

func altered(done kadm.AlterConfigsResponses, err error) (any, error) {
	for _, each := range done {
		if each.Err != nil {
			return nil, each.Err
		}
	}
	return nil, err
}

func asked(c command) kadm.Offsets {
	offsets := kadm.Offsets{}
	for partition, offset := range c.Offsets {
		offsets.AddOffset(c.Topic, partition, offset, -1)
	}
	return offsets
}

func deleteRecords(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	done, err := client.DeleteRecords(ctx, asked(c))
	found := map[int32]int64{}
	for _, each := range done[c.Topic] {
		if each.Err != nil {
			return nil, each.Err
		}
		found[each.Partition] = each.LowWatermark
	}
	return found, err
}

func listOffsets(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	var all kadm.ListedOffsets
	switch c.At {
	case "earliest":
		all, err = client.ListStartOffsets(ctx, c.Topic)
	case "latest":
		all, err = client.ListEndOffsets(ctx, c.Topic)
	case "max_timestamp":
		all, err = client.ListMaxTimestampOffsets(ctx, c.Topic)
	default:
		at, _ := strconv.ParseInt(c.At, 10, 64)
		all, err = client.ListOffsetsAfterMilli(ctx, at, c.Topic)
	}
	found := map[int32]int64{}
	for _, each := range all[c.Topic] {
		if each.Err != nil {
			return nil, each.Err
		}
		found[each.Partition] = each.Offset
	}
	return found, err
}

func describeCluster(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	found, err := client.BrokerMetadata(ctx)
	return map[string]any{"brokers": found.Brokers.NodeIDs(), "controller": found.Controller,
		"has_id": found.Cluster != ""}, err
}

func listGroups(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	found, err := client.ListGroups(ctx)
	return found.Groups(), err
}

func describeGroup(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	all, err := client.DescribeGroups(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	group := all[c.Group]
	members := []any{}
	for _, m := range group.Members {
		held := []string{}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				for _, partition := range topic.Partitions {
					held = append(held, topic.Topic+"-"+strconv.Itoa(int(partition)))
				}
			}
		}
		slices.Sort(held)
		members = append(members, map[string]any{"client_id": m.ClientID, "assignment": held})
	}
	return map[string]any{"state": group.State, "protocol": group.Protocol, "members": members}, group.Err
}

func deleteGroup(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	_, err = client.DeleteGroup(ctx, c.Group)
	return nil, err
}

func fetchOffsets(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	all, err := client.FetchOffsetsForTopics(ctx, c.Group, c.Topic)
	found := map[int32]int64{}
	for _, each := range all[c.Topic] {
		if each.Err != nil {
			return nil, each.Err
		}
		if each.At >= 0 {
			found[each.Partition] = each.At
		}
	}
	return found, err
}

func alterOffsets(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	done, err := client.CommitOffsets(ctx, c.Group, asked(c))
	if err != nil {
		return nil, err
	}
	return nil, done.Error()
}

func deleteOffsets(ctx context.Context, c command) (any, error) {
	client, err := admin(c)
	if err != nil {
		return nil, err
	}
	done, err := client.DeleteOffsets(ctx, c.Group, asked(c).TopicsSet())
	if err != nil {
		return nil, err
	}
	return nil, done.Error()
}
