// franz-go against a running broker: `franz HOST:PORT [--groups | --transactions]`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"klamm.dev/compat/checks"
)

const count = 300

var (
	bootstrap string
	client    *kgo.Client
	admin     *kadm.Client
	same      = checks.Same
)

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), checks.Deadline)
}

func connect(options ...kgo.Opt) *kgo.Client {
	options = append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, options...)
	c, err := kgo.NewClient(options...)
	checks.Must(err)
	return c
}

func topic(prefix string, partitions int32, configs map[string]*string) string {
	ctx, cancel := deadline()
	defer cancel()
	name := checks.Unique(prefix)
	made, err := admin.CreateTopic(ctx, partitions, 1, configs, name)
	checks.Must(err)
	checks.Must(made.Err)
	serves(name, partitions)
	return name
}

// Kafka answers before the partitions serve.
func serves(name string, partitions int32) {
	checks.Eventually(func() error {
		ctx, cancel := deadline()
		defer cancel()
		found, err := admin.ListEndOffsets(ctx, name)
		if err == nil {
			err = found.Error()
		}
		if err == nil && len(found[name]) != int(partitions) {
			err = fmt.Errorf("%d partitions", len(found[name]))
		}
		return err
	})
}

func record(name string, partition int32, seed, i int) *kgo.Record {
	r := &kgo.Record{
		Topic: name, Partition: partition, Timestamp: checks.Timestamp(i),
		Key: checks.Key(seed, i), Value: checks.Value(seed, i),
	}
	for _, h := range checks.Headers(seed, i) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

func send(name string, options ...kgo.Opt) {
	c := connect(append(options, kgo.ProducerLinger(5*time.Millisecond))...)
	defer c.Close()
	ctx, cancel := deadline()
	defer cancel()
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = record(name, 0, 1, i)
	}
	for _, result := range c.ProduceSync(ctx, records...) {
		checks.Must(result.Err)
	}
	for i, r := range records {
		same("acknowledged offset", int64(i), r.Offset)
	}
}

func read(name string, partition int32, offset kgo.Offset, n int, options ...kgo.Opt) []*kgo.Record {
	at := map[string]map[int32]kgo.Offset{name: {partition: offset}}
	c := connect(append(options, kgo.ConsumePartitions(at))...)
	defer c.Close()
	ctx, cancel := deadline()
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := c.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			checks.Must(e.Err)
		}
		records = append(records, fetches.Records()...)
	}
	same("records", n, len(records))
	return records
}

func sameRecord(seed, i int, r *kgo.Record) {
	same("offset", int64(i), r.Offset)
	same("timestamp", checks.Timestamp(i).UnixMilli(), r.Timestamp.UnixMilli())
	same("timestamp type", int8(0), r.Attrs.TimestampType())
	same("leader epoch", int32(0), r.LeaderEpoch)
	same("key", checks.Key(seed, i), r.Key)
	same("value", checks.Value(seed, i), r.Value)
	headers := checks.Headers(seed, i)
	same("headers", len(headers), len(r.Headers))
	for h, header := range headers {
		same("header key", header.Key, r.Headers[h].Key)
		same("header value", header.Value, r.Headers[h].Value)
	}
}

func roundTrip(options ...kgo.Opt) error {
	name := topic("franz", 1, nil)
	send(name, options...)
	for i, r := range read(name, 0, kgo.NewOffset().AtStart(), count) {
		sameRecord(1, i, r)
	}
	return nil
}

// franz-go fetches from an offset in the middle of a batch and drops what comes before it.
func middleOfBatch() error {
	name := topic("middle", 1, nil)
	send(name, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for _, start := range []int{1, 99, 250, 299} {
		for n, r := range read(name, 0, kgo.NewOffset().At(int64(start)), count-start) {
			sameRecord(1, start+n, r)
		}
	}
	last := read(name, 0, kgo.NewOffset().AtEnd().Relative(-10), 10)
	sameRecord(1, 290, last[0])
	after := checks.Timestamp(150).UnixMilli()
	first := 0
	for checks.Timestamp(first).UnixMilli() < after {
		first++
	}
	sameRecord(1, first, read(name, 0, kgo.NewOffset().AfterMilli(after), count-first)[0])
	return nil
}

func smallFetches() error {
	name := topic("small", 1, nil)
	send(name)
	records := read(name, 0, kgo.NewOffset().AtStart(), count,
		kgo.FetchMaxBytes(1), kgo.FetchMaxPartitionBytes(1), kgo.BrokerMaxReadBytes(100<<20))
	for i, r := range records {
		sameRecord(1, i, r)
	}
	return nil
}

func sameError(expected, actual error) error {
	if !errors.Is(actual, expected) {
		return fmt.Errorf("expected %v, got %v", expected, actual)
	}
	return nil
}

func produceErrors() error {
	limit := "2000"
	name := topic("errors", 1, map[string]*string{"max.message.bytes": &limit})
	ctx, cancel := deadline()
	defer cancel()
	one := func(r *kgo.Record) error {
		c := connect(kgo.ProducerBatchCompression(kgo.NoCompression()))
		defer c.Close()
		return c.ProduceSync(ctx, r).FirstErr()
	}
	large := &kgo.Record{Topic: name, Value: make([]byte, 5000)}
	checks.Must(sameError(kerr.MessageTooLarge, one(large)))
	ahead := &kgo.Record{Topic: name, Timestamp: time.Now().Add(2 * time.Hour), Value: []byte("x")}
	checks.Must(sameError(kerr.InvalidTimestamp, one(ahead)))
	return nil
}

func outOfRange() error {
	name := topic("range", 1, nil)
	at := map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().At(77)}}
	c := connect(kgo.ConsumePartitions(at), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer c.Close()
	ctx, cancel := deadline()
	defer cancel()
	for _, e := range c.PollFetches(ctx).Errors() {
		return sameError(kerr.OffsetOutOfRange, e.Err)
	}
	return errors.New("no error")
}

func topics() error {
	ctx, cancel := deadline()
	defer cancel()
	name := topic("topics", 3, nil)
	listed, err := admin.ListTopics(ctx, name)
	checks.Must(err)
	same("partitions", 3, len(listed[name].Partitions))
	for p, detail := range listed[name].Partitions.Sorted() {
		same("partition", int32(p), detail.Partition)
		same("leader", int32(1), detail.Leader)
		same("isr", []int32{1}, detail.ISR)
	}
	again, err := admin.CreateTopics(ctx, 1, 1, nil, name)
	checks.Must(err)
	checks.Must(sameError(kerr.TopicAlreadyExists, again[name].Err))
	other := checks.Unique("other")
	wide, err := admin.CreateTopics(ctx, 1, 3, nil, other)
	checks.Must(err)
	checks.Must(sameError(kerr.InvalidReplicationFactor, wide[other].Err))
	valid, err := admin.ValidateCreateTopics(ctx, 2, 1, nil, other)
	checks.Must(err)
	checks.Must(valid[other].Err)
	grown, err := admin.CreatePartitions(ctx, 2, name)
	checks.Must(err)
	checks.Must(grown[name].Err)
	serves(name, 5)
	gone, err := admin.DeleteTopics(ctx, name, other)
	checks.Must(err)
	checks.Must(gone[name].Err)
	return sameError(kerr.UnknownTopicOrPartition, gone[other].Err)
}

func configs() error {
	ctx, cancel := deadline()
	defer cancel()
	first := "91000"
	name := topic("configs", 1, map[string]*string{"retention.ms": &first})
	value := func(key string) string {
		found, err := admin.DescribeTopicConfigs(ctx, name)
		checks.Must(err)
		for _, config := range found[0].Configs {
			if config.Key == key {
				return config.MaybeValue()
			}
		}
		return "absent"
	}
	same("value", "91000", value("retention.ms"))
	second := "92000"
	compact := "compact"
	changes := []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &second},
		{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: &compact},
	}
	altered, err := admin.AlterTopicConfigs(ctx, changes, name)
	checks.Must(err)
	checks.Must(altered[0].Err)
	checks.Eventually(func() error { same("value", "92000", value("retention.ms")); return nil })
	same("list", "delete,compact", value("cleanup.policy"))
	return nil
}

func offsets() error {
	ctx, cancel := deadline()
	defer cancel()
	name := topic("offsets", 1, nil)
	send(name)
	var asked kadm.Offsets
	asked.Add(kadm.Offset{Topic: name, Partition: 0, At: 40, LeaderEpoch: -1})
	deleted, err := admin.DeleteRecords(ctx, asked)
	checks.Must(err)
	answer, _ := deleted.Lookup(name, 0)
	checks.Must(answer.Err)
	same("low watermark", int64(40), answer.LowWatermark)
	start, err := admin.ListStartOffsets(ctx, name)
	checks.Must(err)
	same("start", int64(40), start[name][0].Offset)
	end, err := admin.ListEndOffsets(ctx, name)
	checks.Must(err)
	same("end", int64(count), end[name][0].Offset)
	// kadm gives the end for a time after the last record.
	late, err := admin.ListOffsetsAfterMilli(ctx, time.Now().UnixMilli(), name)
	checks.Must(err)
	same("late", int64(count), late[name][0].Offset)
	epoch := kadm.OffsetForLeaderEpochRequest{}
	epoch.Add(name, 0, 0)
	ends, err := admin.OffsetForLeaderEpoch(ctx, epoch)
	checks.Must(err)
	same("end of epoch 0", int64(count), ends[name][0].EndOffset)
	return nil
}

func cluster() error {
	ctx, cancel := deadline()
	defer cancel()
	metadata, err := admin.BrokerMetadata(ctx)
	checks.Must(err)
	same("controller", int32(1), metadata.Controller)
	same("brokers", []int32{1}, metadata.Brokers.NodeIDs())
	name := topic("dirs", 2, nil)
	send(name)
	dirs, err := admin.DescribeBrokerLogDirs(ctx, 1, kadm.TopicsSet{name: {0: {}, 1: {}}})
	checks.Must(err)
	checks.Must(dirs.Error())
	zero, found := dirs.LookupPartition(name, 0)
	checks.That("partition 0 is found and has bytes", found && zero.Size > count)
	one, found := dirs.LookupPartition(name, 1)
	checks.That("partition 1 is found and empty", found && one.Size == 0)
	versions, err := admin.ApiVersions(ctx)
	checks.Must(err)
	broker := versions[1]
	lowest, highest, ok := broker.KeyVersions(int16(kmsg.Produce))
	checks.That("Produce is listed", ok)
	same("Produce from", int16(0), lowest)
	checks.That("Produce up to 13", highest >= 13)
	return nil
}

func group() error {
	name := topic("group", 3, nil)
	send(name)
	member := checks.Unique("group")
	seen := 0
	for seen < count {
		c := connect(kgo.ConsumerGroup(member), kgo.ConsumeTopics(name), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		ctx, cancel := deadline()
		fetches := c.PollRecords(ctx, 100)
		for _, e := range fetches.Errors() {
			checks.Must(e.Err)
		}
		for _, r := range fetches.Records() {
			sameRecord(1, seen, r)
			seen++
		}
		checks.Must(c.CommitUncommittedOffsets(ctx))
		cancel()
		c.Close()
	}
	same("records", count, seen)
	ctx, cancel := deadline()
	defer cancel()
	stored, err := admin.FetchOffsets(ctx, member)
	checks.Must(err)
	at, _ := stored.Lookup(name, 0)
	same("committed", int64(count), at.At)
	same("leader epoch", int32(0), at.LeaderEpoch)
	return nil
}

func main() {
	bootstrap = os.Args[1]
	checks.Start("franz-go")
	client = connect()
	admin = kadm.NewClient(client)
	if len(os.Args) > 2 && os.Args[2] == "--groups" {
		checks.Check("group", group)
		checks.End()
	}
	if len(os.Args) > 2 && os.Args[2] == "--transactions" {
		transactions()
		checks.End()
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
		"zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		codec := kgo.ProducerBatchCompression(codecs[name])
		checks.Check("idempotent "+name, func() error { return roundTrip(codec) })
		checks.Check("acks=1 "+name, func() error {
			return roundTrip(codec, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
		})
	}
	checks.Check("fetch from the middle of a batch, by time, relative to the end", middleOfBatch)
	checks.Check("fetches of one byte", smallFetches)
	checks.Check("produce errors", produceErrors)
	checks.Check("an offset out of range", outOfRange)
	checks.Check("topics", topics)
	checks.Check("configs", configs)
	checks.Check("offsets", offsets)
	checks.Check("cluster, log directories, versions", cluster)
	// What the clients of older releases sent.
	for _, release := range []string{"v0.11.0", "v1.0", "v2.1", "v2.8", "v3.5"} {
		versions := kversion.FromString(release)
		checks.That(release+" is known", versions != nil)
		checks.Check("as for "+release, func() error {
			return roundTrip(kgo.MaxVersions(versions),
				kgo.ProducerBatchCompression(kgo.GzipCompression()))
		})
	}
	checks.End()
}
