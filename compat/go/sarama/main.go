// sarama against a running broker: `sarama HOST:PORT [--groups]`.
//
// It does not negotiate: the configured release decides the version of each request.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"

	"klamm.dev/compat/checks"
)

const count = 200

var (
	bootstrap string
	same      = checks.Same
)

func config(version sarama.KafkaVersion) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.ClientID = "compat"
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Consumer.Return.Errors = true
	return c
}

func admin(version sarama.KafkaVersion) sarama.ClusterAdmin {
	a, err := sarama.NewClusterAdmin([]string{bootstrap}, config(version))
	checks.Must(err)
	return a
}

func topic(version sarama.KafkaVersion, partitions int32, entries map[string]*string) string {
	a := admin(version)
	defer a.Close()
	name := checks.Unique("sarama")
	detail := &sarama.TopicDetail{
		NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: entries,
	}
	checks.Must(a.CreateTopic(name, detail, false))
	serves(version, name, partitions)
	return name
}

// Kafka answers before the partitions serve.
func serves(version sarama.KafkaVersion, name string, partitions int32) {
	checks.Eventually(func() error {
		c, err := sarama.NewClient([]string{bootstrap}, config(version))
		checks.Must(err)
		defer c.Close()
		for p := range partitions {
			if _, err := c.GetOffset(name, p, sarama.OffsetNewest); err != nil {
				return err
			}
		}
		return nil
	})
}

func message(name string, i int) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: name, Timestamp: checks.Timestamp(i)}
	if key := checks.Key(1, i); key != nil {
		m.Key = sarama.ByteEncoder(key)
	}
	if value := checks.Value(1, i); value != nil {
		m.Value = sarama.ByteEncoder(value)
	}
	for _, h := range checks.Headers(1, i) {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return m
}

func send(name string, c *sarama.Config) {
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	checks.Must(err)
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, count)
	for i := range messages {
		messages[i] = message(name, i)
	}
	// In three calls, so that there are several batches.
	for at := 0; at < count; at += 70 {
		checks.Must(producer.SendMessages(messages[at:min(at+70, count)]))
	}
	for i, m := range messages {
		same("acknowledged offset", int64(i), m.Offset)
	}
}

func sameMessage(i int, m *sarama.ConsumerMessage) {
	same("offset", int64(i), m.Offset)
	same("timestamp", checks.Timestamp(i).UnixMilli(), m.Timestamp.UnixMilli())
	same("key", string(checks.Key(1, i)), string(m.Key))
	same("null key", checks.Key(1, i) == nil, m.Key == nil)
	same("value", string(checks.Value(1, i)), string(m.Value))
	same("null value", checks.Value(1, i) == nil, m.Value == nil)
	headers := checks.Headers(1, i)
	same("headers", len(headers), len(m.Headers))
	for h, header := range headers {
		same("header key", header.Key, string(m.Headers[h].Key))
		same("header value", string(header.Value), string(m.Headers[h].Value))
	}
}

func read(name string, c *sarama.Config, start int64, n int) []*sarama.ConsumerMessage {
	consumer, err := sarama.NewConsumer([]string{bootstrap}, c)
	checks.Must(err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(name, 0, start)
	checks.Must(err)
	defer partition.AsyncClose()
	late := time.After(checks.Deadline)
	var messages []*sarama.ConsumerMessage
	for len(messages) < n {
		select {
		case m := <-partition.Messages():
			messages = append(messages, m)
		case err := <-partition.Errors():
			checks.Must(err)
		case <-late:
			panic(fmt.Sprintf("%d of %d messages in time", len(messages), n))
		}
	}
	return messages
}

func roundTrip(version sarama.KafkaVersion, codec sarama.CompressionCodec, acks sarama.RequiredAcks) error {
	name := topic(version, 1, nil)
	c := config(version)
	c.Producer.Compression = codec
	c.Producer.RequiredAcks = acks
	send(name, c)
	for i, m := range read(name, c, sarama.OffsetOldest, count) {
		sameMessage(i, m)
	}
	sameMessage(101, read(name, c, 101, 1)[0])
	return nil
}

func idempotent(version sarama.KafkaVersion) error {
	name := topic(version, 1, nil)
	c := config(version)
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Net.MaxOpenRequests = 1
	send(name, c)
	for i, m := range read(name, c, sarama.OffsetOldest, count) {
		sameMessage(i, m)
	}
	return nil
}

func offsets(version sarama.KafkaVersion) error {
	name := topic(version, 1, nil)
	send(name, config(version))
	a := admin(version)
	defer a.Close()
	checks.Must(a.DeleteRecords(name, map[int32]int64{0: 25}))
	c, err := sarama.NewClient([]string{bootstrap}, config(version))
	checks.Must(err)
	defer c.Close()
	at := checks.Timestamp(90).UnixMilli()
	first := 25
	for checks.Timestamp(first).UnixMilli() < at {
		first++
	}
	for asked, expected := range map[int64]int64{
		sarama.OffsetOldest: 25, sarama.OffsetNewest: count, at: int64(first),
	} {
		found, err := c.GetOffset(name, 0, asked)
		checks.Must(err)
		same(fmt.Sprintf("offset for %d", asked), expected, found)
	}
	consumer, err := sarama.NewConsumerFromClient(c)
	checks.Must(err)
	_, err = consumer.ConsumePartition(name, 0, 5)
	checks.That(fmt.Sprint("out of range, not ", err), errors.Is(err, sarama.ErrOffsetOutOfRange))
	return nil
}

func failure(what string, expected sarama.KError, actual error) {
	var kerror sarama.KError
	var topicError *sarama.TopicError
	var partitionError *sarama.TopicPartitionError
	switch {
	case errors.As(actual, &topicError):
		kerror = topicError.Err
	case errors.As(actual, &partitionError):
		kerror = partitionError.Err
	case !errors.As(actual, &kerror):
		panic(fmt.Sprintf("%s: expected %v, got %v", what, expected, actual))
	}
	same(what, expected, kerror)
}

func clusterAdmin(version sarama.KafkaVersion) error {
	a := admin(version)
	defer a.Close()
	retention := "93000"
	name := topic(version, 2, map[string]*string{"retention.ms": &retention})
	topics, err := a.ListTopics()
	checks.Must(err)
	same("partitions", int32(2), topics[name].NumPartitions)
	same("factor", int16(1), topics[name].ReplicationFactor)
	same("config", "93000", *topics[name].ConfigEntries["retention.ms"])
	described, err := a.DescribeTopics([]string{name})
	checks.Must(err)
	same("leader", int32(1), described[0].Partitions[0].Leader)
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}
	failure("again", sarama.ErrTopicAlreadyExists, a.CreateTopic(name, detail, false))
	wide := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 4}
	failure("wide", sarama.ErrInvalidReplicationFactor,
		a.CreateTopic(checks.Unique("wide"), wide, false))
	checks.Must(a.CreatePartitions(name, 4, nil, false))
	serves(version, name, 4)
	failure("shrink", sarama.ErrInvalidPartitions, a.CreatePartitions(name, 1, nil, false))
	size := "1048576"
	// The whole of the topic's configs is replaced.
	checks.Must(a.AlterConfig(sarama.TopicResource, name, map[string]*string{"segment.bytes": &size}, false))
	checks.Eventually(func() error {
		entries, err := a.DescribeConfig(
			sarama.ConfigResource{Type: sarama.TopicResource, Name: name})
		checks.Must(err)
		for _, entry := range entries {
			switch entry.Name {
			case "segment.bytes":
				same("segment.bytes", "1048576", entry.Value)
			case "retention.ms":
				same("retention.ms", "604800000", entry.Value)
			}
		}
		return nil
	})
	brokers, controller, err := a.DescribeCluster()
	checks.Must(err)
	same("brokers", 1, len(brokers))
	same("controller", int32(1), controller)
	dirs, err := a.DescribeLogDirs([]int32{1})
	checks.Must(err)
	same("log directories", 1, len(dirs[1]))
	checks.Must(a.DeleteTopic(name))
	failure("gone", sarama.ErrUnknownTopicOrPartition, a.DeleteTopic(checks.Unique("never")))
	return nil
}

type handler struct {
	seen chan *sarama.ConsumerMessage
}

func (h handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		s.MarkMessage(m, "")
		h.seen <- m
	}
	return nil
}

func group(version sarama.KafkaVersion) error {
	name := topic(version, 1, nil)
	c := config(version)
	send(name, c)
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	g, err := sarama.NewConsumerGroup([]string{bootstrap}, checks.Unique("group"), c)
	checks.Must(err)
	defer g.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checks.Deadline)
	defer cancel()
	h := handler{make(chan *sarama.ConsumerMessage)}
	go g.Consume(ctx, []string{name}, h)
	for i := range count {
		select {
		case m := <-h.seen:
			sameMessage(i, m)
		case err := <-g.Errors():
			checks.Must(err)
		case <-ctx.Done():
			panic("not in time")
		}
	}
	return nil
}

func main() {
	bootstrap = os.Args[1]
	sarama.Logger = log.New(io.Discard, "", 0)
	checks.Start("sarama")
	groups := len(os.Args) > 2 && os.Args[2] == "--groups"
	for _, version := range []sarama.KafkaVersion{sarama.V2_1_0_0, sarama.MaxVersion} {
		v := version.String()
		if groups {
			checks.Check(v+" group", func() error { return group(version) })
			continue
		}
		for codec := sarama.CompressionNone; codec <= sarama.CompressionZSTD; codec++ {
			for _, acks := range []sarama.RequiredAcks{sarama.WaitForLocal, sarama.WaitForAll} {
				checks.Check(fmt.Sprintf("%s acks=%d %s", v, acks, codec), func() error {
					return roundTrip(version, codec, acks)
				})
			}
		}
		checks.Check(v+" idempotent", func() error { return idempotent(version) })
		checks.Check(v+" offsets", func() error { return offsets(version) })
		checks.Check(v+" cluster admin", func() error { return clusterAdmin(version) })
	}
	checks.End()
}
