// franz-go's consume-transform-produce; see compat/pipelines.
//
//	pipeline HOST:PORT IN OUT GROUP ID
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const many = 50

// One session, until something cannot be repaired.
func live(bootstrap, in, out, group, id string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(id), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(in), kgo.TransactionTimeout(10*time.Second),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer session.Close()
	ctx := context.Background()
	for {
		records := session.PollRecords(ctx, many).Records()
		if len(records) == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		failed := kgo.AbortingFirstErrPromise(session.Client())
		for _, r := range records {
			session.Produce(ctx, &kgo.Record{Topic: out, Value: r.Value}, failed.Promise())
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(failed.Err() == nil))
		if err != nil {
			return err
		}
		if committed {
			fmt.Println("committed", len(records))
		}
	}
}

func main() {
	a := os.Args
	for {
		fmt.Fprintln(os.Stderr, "again after", live(a[1], a[2], a[3], a[4], a[5]))
	}
}
