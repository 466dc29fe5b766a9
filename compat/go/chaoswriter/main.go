// Writes numbers to all partitions in turn until its input ends, and tells what was acknowledged; see
// compat/chaos_clients.py.
//
//	chaoswriter HOST:PORT,... TOPIC PARTITIONS RATE
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var out sync.Mutex

func say(format string, rest ...any) {
	out.Lock()
	defer out.Unlock()
	fmt.Printf(format+"\n", rest...)
}

func client(bootstrap string) (*kgo.Client, error) {
	// For each request that waits for a stopped node it dials twice, half a second each, before it
	// sends anything of that partition elsewhere: so one request at a time.
	return kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(500*time.Millisecond),
		kgo.DialTimeout(1500*time.Millisecond), kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.RecordDeliveryTimeout(180*time.Second),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.MetadataMaxAge(500*time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*50*time.Millisecond, 250*time.Millisecond)
		}))
}

func main() {
	topic := os.Args[2]
	partitions, _ := strconv.Atoi(os.Args[3])
	rate, _ := strconv.ParseFloat(os.Args[4], 64)
	producer, err := client(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	ctx := context.Background()
	begin := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	sent := 0
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-tick.C:
			for due := int(time.Since(begin).Seconds() * rate); sent < due; sent++ {
				send(ctx, producer, topic, int32(sent%partitions), sent)
			}
		}
	}
	if err := producer.Flush(ctx); err != nil {
		say("F -1 %v", err)
	}
	producer.Close()
	say("S %d", sent)
}

func send(ctx context.Context, producer *kgo.Client, topic string, partition int32, number int) {
	record := &kgo.Record{
		Topic: topic, Partition: partition, Value: []byte(strconv.Itoa(number))}
	producer.Produce(ctx, record, func(r *kgo.Record, err error) {
		if err != nil {
			say("F %d %v", number, err)
			return
		}
		say("A %d %d %d %d", time.Now().UnixNano(), r.Partition, r.Offset, number)
	})
}
