package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"klamm.dev/compat/checks"
)

func transactional(id string, options ...kgo.Opt) *kgo.Client {
	return connect(append(options, kgo.TransactionalID(id))...)
}

// Sends values to partition 0, each acknowledged.
func put(c *kgo.Client, name string, values ...string) error {
	ctx, cancel := deadline()
	defer cancel()
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: name, Value: []byte(value)}
	}
	return c.ProduceSync(ctx, records...).FirstErr()
}

func end(c *kgo.Client, how kgo.TransactionEndTry) error {
	ctx, cancel := deadline()
	defer cancel()
	return c.EndTransaction(ctx, how)
}

func endOffset(name string, listed func(context.Context, ...string) (kadm.ListedOffsets, error)) int64 {
	ctx, cancel := deadline()
	defer cancel()
	found, err := listed(ctx, name)
	checks.Must(err)
	checks.Must(found.Error())
	return found[name][0].Offset
}

func stableEnd(name string) int64 { return endOffset(name, admin.ListCommittedOffsets) }

// All that a reader of committed records gets, once no transaction is open.
func committed(name string) []string {
	checks.Eventually(func() error {
		if stable, all := stableEnd(name), endOffset(name, admin.ListEndOffsets); stable != all {
			return fmt.Errorf("the stable end is %d of %d", stable, all)
		}
		return nil
	})
	last := stableEnd(name)
	// Control records too, so that the reader knows when it is at the end.
	c := connect(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().AtStart()}}))
	defer c.Close()
	ctx, cancel := deadline()
	defer cancel()
	values := []string{}
	for at := int64(0); at < last; {
		fetches := c.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			checks.Must(e.Err)
		}
		for _, r := range fetches.Records() {
			at = r.Offset + 1
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		}
	}
	return values
}

func commitAndAbort() error {
	name := topic("txn", 1, nil)
	c := transactional(checks.Unique("id"))
	defer c.Close()
	expected := []string{}
	for n := range 30 {
		checks.Must(c.BeginTransaction())
		values := []string{fmt.Sprint(n, "a"), fmt.Sprint(n, "b")}
		checks.Must(put(c, name, values...))
		if n%3 == 2 {
			checks.Must(end(c, kgo.TryAbort))
			continue
		}
		checks.Must(end(c, kgo.TryCommit))
		expected = append(expected, values...)
	}
	same("committed", expected, committed(name))
	return nil
}

func openHoldsBack() error {
	name := topic("txn", 1, nil)
	c := transactional(checks.Unique("id"))
	defer c.Close()
	checks.Must(c.BeginTransaction())
	checks.Must(put(c, name, "open"))
	same("stable end", int64(0), stableEnd(name))
	checks.Must(end(c, kgo.TryCommit))
	same("committed", []string{"open"}, committed(name))
	return nil
}

func fencing() error {
	name, id := topic("txn", 1, nil), checks.Unique("id")
	zombie, owner := transactional(id), transactional(id)
	defer zombie.Close()
	defer owner.Close()
	checks.Must(zombie.BeginTransaction())
	checks.Must(put(zombie, name, "zombie"))
	checks.Must(owner.BeginTransaction())
	checks.Must(put(owner, name, "owner"))
	if put(zombie, name, "again") == nil && end(zombie, kgo.TryCommit) == nil {
		return errors.New("the zombie committed")
	}
	checks.Must(end(owner, kgo.TryCommit))
	same("committed", []string{"owner"}, committed(name))
	return nil
}

// As after a crash: nobody ends the transaction but the next client of that id.
func takeOver() error {
	name, id := topic("txn", 1, nil), checks.Unique("id")
	gone := transactional(id)
	checks.Must(gone.BeginTransaction())
	checks.Must(put(gone, name, "left open"))
	gone.Close()
	same("stable end", int64(0), stableEnd(name))
	next := transactional(id)
	defer next.Close()
	checks.Must(next.BeginTransaction())
	checks.Must(put(next, name, "next"))
	checks.Must(end(next, kgo.TryCommit))
	same("committed", []string{"next"}, committed(name))
	return nil
}

func timeOut() error {
	name := topic("txn", 1, nil)
	c := transactional(checks.Unique("id"), kgo.TransactionTimeout(time.Second))
	defer c.Close()
	checks.Must(c.BeginTransaction())
	checks.Must(put(c, name, "slow"))
	same("committed", []string{}, committed(name))
	if end(c, kgo.TryCommit) == nil {
		return errors.New("an aborted transaction was committed")
	}
	same("committed", []string{}, committed(name))
	return nil
}

// Consumes, writes and commits with the offsets of the group; the first round is aborted.
func pipeline() error {
	in, out, group := topic("txn-in", 1, nil), topic("txn-out", 1, nil), checks.Unique("group")
	expected := []string{}
	for i := range 200 {
		expected = append(expected, fmt.Sprint("v", i))
	}
	source := connect()
	defer source.Close()
	checks.Must(put(source, in, expected...))
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(checks.Unique("id")), kgo.ConsumerGroup(group), kgo.ConsumeTopics(in),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	checks.Must(err)
	defer session.Close()
	ctx, cancel := deadline()
	defer cancel()
	aborted := false
	for taken := 0; taken < len(expected); {
		fetches := session.PollRecords(ctx, 50)
		for _, e := range fetches.Errors() {
			checks.Must(e.Err)
		}
		checks.Must(session.Begin())
		records := fetches.Records()
		for _, r := range records {
			session.Produce(ctx, &kgo.Record{Topic: out, Value: r.Value}, nil)
		}
		did, err := session.End(ctx, kgo.TransactionEndTry(aborted))
		checks.Must(err)
		if did {
			taken += len(records)
		}
		aborted = true
	}
	same("output", expected, committed(out))
	stored, err := admin.FetchOffsets(ctx, group)
	checks.Must(err)
	at, _ := stored.Lookup(in, 0)
	same("committed offset", int64(len(expected)), at.At)
	return nil
}

func transactions() {
	checks.Check("committed records are read, aborted ones are not", commitAndAbort)
	checks.Check("an open transaction holds readers back", openHoldsBack)
	checks.Check("a second producer shuts the first one out", fencing)
	checks.Check("the next client ends what was left open", takeOver)
	checks.Check("a transaction that takes too long is aborted", timeOut)
	checks.Check("consume, transform, produce", pipeline)
}
