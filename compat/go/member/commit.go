package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type commitCallback = func(*kgo.Client, *kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse, error)

// commitDone tells which of the offsets were acknowledged.
func commitDone(ends map[string]map[int32]kgo.EpochOffset, topic, name string) commitCallback {
	return func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "# %s: %v\n", name, err)
			return
		}
		var lines strings.Builder
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					fmt.Fprintf(os.Stderr, "# %s: error %d\n", name, p.ErrorCode)
					continue
				}
				offset := ends[topic][p.Partition].Offset
				fmt.Fprintf(&lines, "C %d %s %d %d\n", time.Now().UnixNano(), name, p.Partition, offset)
			}
		}
		say(lines.String())
	}
}
