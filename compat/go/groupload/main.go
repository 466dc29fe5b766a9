// Many groups with many members in one process, over raw connections: how long the coordinator
// takes until they are stable, after one member joined, after it left, and what it costs.
//
//	groupload HOST:PORT PID classic|consumer GROUPS MEMBERS
//
// Prints one line for each phase: name, the groups' times in milliseconds (median, 99th percentile,
// largest) and the CPU seconds of process PID. After each change every member asks at once, so that
// the times are the coordinator's and not those of heartbeat intervals.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	idle       = 10 * time.Second
	idlePeriod = 3 * time.Second // a client's default heartbeat.interval.ms
	deadline   = 5 * time.Minute
)

// A member of either protocol.
type member interface {
	// join makes it a member; it may wait for the others.
	join() error
	// ask sends a heartbeat and does what the answer wants; false while the group changes.
	ask() (settled bool, err error)
	leave() error
	close()
}

type group struct {
	name    string
	members []member
	took    time.Duration
}

// load is one run: what the groups are and who serves them.
type load struct {
	address string
	pid     int
	kind    string
	topic   string
	groups  []*group
	dials   chan struct{}
}

func (l *load) member(group string, expected *census) member {
	l.dials <- struct{}{}
	defer func() { <-l.dials }()
	if l.kind == "classic" {
		return &classicMember{wire: dial(l.address), group: group, topic: l.topic, census: expected}
	}
	return newConsumerMember(dial(l.address), group, l.topic, expected)
}

// settle lets every member of a group ask until all of them are settled.
func (g *group) settle(begun time.Time) error {
	var failed error
	for round := 0; ; round++ {
		if time.Since(begun) > deadline {
			return fmt.Errorf("%s: not stable after %v", g.name, deadline)
		}
		var mutex sync.Mutex
		var all sync.WaitGroup
		settled := true
		for _, m := range g.members {
			all.Add(1)
			go func() {
				defer all.Done()
				ok, err := m.ask()
				mutex.Lock()
				defer mutex.Unlock()
				settled = settled && ok
				if err != nil {
					failed = err
				}
			}()
		}
		all.Wait()
		if failed != nil {
			return failed
		}
		if settled {
			g.took = time.Since(begun)
			return nil
		}
		if round > 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// phase runs `change` for every group at once and reports what it took.
func (l *load) phase(name string, change func(g *group, begun time.Time) error) {
	before, begun := cpu(l.pid), time.Now()
	var all sync.WaitGroup
	for _, g := range l.groups {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := change(g, time.Now()); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
				os.Exit(1)
			}
		}()
	}
	all.Wait()
	wall := time.Since(begun)
	took := make([]float64, 0, len(l.groups))
	for _, g := range l.groups {
		took = append(took, float64(g.took.Microseconds())/1000)
	}
	sort.Float64s(took)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))] }
	fmt.Printf("%s %.1f %.1f %.1f %.1f %.2f\n", name, at(0.5), at(0.99), at(1), wall.Seconds()*1000,
		cpu(l.pid)-before)
}

func (l *load) run(size int) {
	sizes := make(map[string]*census)
	for _, g := range l.groups {
		sizes[g.name] = &census{members: size, partitions: partitionsFor(size)}
		for range size {
			g.members = append(g.members, l.member(g.name, sizes[g.name]))
		}
	}
	l.phase("stable", func(g *group, begun time.Time) error {
		if err := joinAll(g.members); err != nil {
			return err
		}
		return g.settle(begun)
	})
	l.idle()
	extra := make(map[string]member)
	for _, g := range l.groups {
		extra[g.name] = l.member(g.name, sizes[g.name])
	}
	l.phase("join", func(g *group, begun time.Time) error {
		sizes[g.name].set(size + 1)
		newcomer := make(chan error, 1)
		go func() { newcomer <- extra[g.name].join() }()
		g.members = append(g.members, &joining{member: extra[g.name], done: newcomer})
		return g.settle(begun)
	})
	l.phase("leave", func(g *group, begun time.Time) error {
		sizes[g.name].set(size)
		g.members = g.members[:size]
		if err := extra[g.name].leave(); err != nil {
			return err
		}
		return g.settle(begun)
	})
	for _, g := range l.groups {
		for _, m := range g.members {
			m.close()
		}
	}
}

func joinAll(members []member) error {
	errors := make(chan error, len(members))
	for _, m := range members {
		go func() { errors <- m.join() }()
	}
	for range members {
		if err := <-errors; err != nil {
			return err
		}
	}
	return nil
}

// joining is a member whose first join is under way.
type joining struct {
	member
	done   chan error
	joined bool
}

func (j *joining) ask() (bool, error) {
	if !j.joined {
		select {
		case err := <-j.done:
			if err != nil {
				return false, err
			}
			j.joined = true
		default:
			return false, nil
		}
	}
	return j.member.ask()
}

// idle is what stable groups cost: heartbeats at a client's pace.
func (l *load) idle() {
	before, begun := cpu(l.pid), time.Now()
	var all sync.WaitGroup
	n := 0
	for _, g := range l.groups {
		for _, m := range g.members {
			all.Add(1)
			n++
			start := idlePeriod * time.Duration(n%997) / 997
			go func() {
				defer all.Done()
				for at := start; at < idle; at += idlePeriod {
					time.Sleep(time.Until(begun.Add(at)))
					if _, err := m.ask(); err != nil {
						fmt.Fprintln(os.Stderr, "idle:", err)
						os.Exit(1)
					}
				}
			}()
		}
	}
	all.Wait()
	fmt.Printf("idle 0 0 0 %d %.2f\n", idle.Milliseconds(), cpu(l.pid)-before)
}

// cpu is the user and system time of a process, in seconds.
func cpu(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const ticksPerSecond = 100
	return (user + system) / ticksPerSecond
}

func main() {
	pid, _ := strconv.Atoi(os.Args[2])
	count, _ := strconv.Atoi(os.Args[4])
	size, _ := strconv.Atoi(os.Args[5])
	l := &load{address: os.Args[1], pid: pid, kind: os.Args[3], dials: make(chan struct{}, 64)}
	l.topic = fmt.Sprintf("load-%s-%d-%d-%d", l.kind, count, size, os.Getpid())
	for i := range count {
		l.groups = append(l.groups, &group{name: fmt.Sprintf("%s-%d", l.topic, i)})
	}
	prepare(l, partitionsFor(size))
	l.run(size)
}

// partitionsFor gives every member something to hold, the one that joins too.
func partitionsFor(size int) int { return size + size/5 + 1 }

// prepare makes the topic and wakes the coordinator of every group.
func prepare(l *load, partitions int) {
	w := dial(l.address)
	defer w.close()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.SetVersion(7)
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = l.topic, int32(partitions), 1
	create.Topics = append(create.Topics, topic)
	create.TimeoutMillis = 30000
	created := w.must(create).(*kmsg.CreateTopicsResponse)
	if code := created.Topics[0].ErrorCode; code != 0 {
		fmt.Fprintln(os.Stderr, "create topic: error", code)
		os.Exit(1)
	}
	for _, g := range l.groups {
		for {
			find := kmsg.NewPtrFindCoordinatorRequest()
			find.SetVersion(4)
			find.CoordinatorKeys = []string{g.name}
			found := w.must(find).(*kmsg.FindCoordinatorResponse)
			if found.Coordinators[0].ErrorCode == 0 {
				describe := kmsg.NewPtrDescribeGroupsRequest()
				describe.SetVersion(5)
				describe.Groups = []string{g.name}
				seen := w.must(describe).(*kmsg.DescribeGroupsResponse)
				if seen.Groups[0].ErrorCode == 0 {
					break
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
