// franz-go members of a group that tell what they read and commit; see python/group_member.py.
//
//	member HOST:PORT TOPIC GROUP MODE COUNT NAME
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var out sync.Mutex

func say(lines string) {
	out.Lock()
	defer out.Unlock()
	os.Stdout.WriteString(lines)
}

func member(stop context.Context, bootstrap, topic, group, mode, name string) {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ClientID(name), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}
	switch mode {
	case "eager":
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative":
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "static":
		options = append(options, kgo.InstanceID(name))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for stop.Err() == nil {
		fetches := client.PollRecords(stop, 100)
		ns := time.Now().UnixNano()
		ends := map[string]map[int32]kgo.EpochOffset{topic: {}}
		var lines strings.Builder
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			first, n := p.Records[0], len(p.Records)
			fmt.Fprintf(&lines, "R %d %s %d %d %d\n", ns, name, p.Partition, first.Offset, n)
			last := p.Records[n-1]
			ends[topic][p.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
		})
		say(lines.String())
		if len(ends[topic]) > 0 {
			commit(client, ends, topic, name)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

func commit(client *kgo.Client, ends map[string]map[int32]kgo.EpochOffset, topic, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client.CommitOffsetsSync(ctx, ends, commitDone(ends, topic, name))
}

func main() {
	count, _ := strconv.Atoi(os.Args[5])
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var members sync.WaitGroup
	for i := 0; i < count; i++ {
		name := fmt.Sprintf("%s-%d", os.Args[6], i)
		members.Add(1)
		go func() {
			defer members.Done()
			member(stop, os.Args[1], os.Args[2], os.Args[3], os.Args[4], name)
		}()
	}
	members.Wait()
}
