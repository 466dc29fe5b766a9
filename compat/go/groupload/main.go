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
	deadline   = 2 * time.Minute
	pauseMax   = 300 * time.Millisecond
)

// A member of either protocol.
type member interface {
	// join makes it a member; it may wait for the others.
	join() error
	// ask sends a heartbeat and does what the answer wants.
	ask() (state, error)
	leave() error
	close()
}

// state is a group as one member knows it.
type state struct {
	joined  bool
	epoch   int32 // the generation, or the member's epoch
	members int   // of a classic group, as its leader counted them
	held    int   // partitions of this member
}

type group struct {
	name    string
	members []member
	took    time.Duration
}

// settled is a group whose members agree and hold every partition.
func settled(kind string, states []state, partitions int) bool {
	held := 0
	for _, s := range states {
		held += s.held
		if !s.joined || s.epoch != states[0].epoch {
			return false
		}
		if kind == "classic" && s.members != len(states) {
			return false
		}
	}
	return held == partitions
}

// load is one run: what the groups are and who serves them.
type load struct {
	address string
	pid     int
	kind    string
	topic   string
	groups  []*group
	// Of the topic; every member has something to hold, the one that joins too.
	partitions int
	dials      chan struct{}
}

func (l *load) member(group string) member {
	l.dials <- struct{}{}
	defer func() { <-l.dials }()
	if l.kind == "classic" {
		return &classicMember{
			wire: dial(l.address), group: group, topic: l.topic, partitions: l.partitions}
	}
	return newConsumerMember(dial(l.address), group, l.topic)
}

// settle lets every member ask, again and again, until the group has settled.
func (g *group) settle(l *load, begun time.Time) error {
	states := make([]state, len(g.members))
	var mutex sync.Mutex
	var all sync.WaitGroup
	var done bool
	var failed error
	for i, m := range g.members {
		all.Add(1)
		go func() {
			defer all.Done()
			for pause := 5 * time.Millisecond; ; pause = min(2*pause, pauseMax) {
				seen, err := m.ask()
				mutex.Lock()
				states[i] = seen
				if err != nil || time.Since(begun) > deadline {
					failed = fmt.Errorf("%s: not stable: %v", g.name, err)
				}
				if !done && seen.joined && settled(l.kind, states, l.partitions) {
					done, g.took = true, time.Since(begun)
				}
				end := done || failed != nil
				mutex.Unlock()
				if end {
					return
				}
				time.Sleep(pause)
			}
		}()
	}
	all.Wait()
	return failed
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
	for _, g := range l.groups {
		for range size {
			g.members = append(g.members, l.member(g.name))
		}
	}
	l.phase("stable", func(g *group, begun time.Time) error {
		for i, m := range g.members {
			g.members[i] = join(m)
		}
		return g.settle(l, begun)
	})
	l.idle()
	extra := make(map[string]member)
	for _, g := range l.groups {
		extra[g.name] = l.member(g.name)
	}
	l.phase("join", func(g *group, begun time.Time) error {
		g.members = append(g.members, join(extra[g.name]))
		return g.settle(l, begun)
	})
	l.phase("leave", func(g *group, begun time.Time) error {
		g.members = g.members[:size]
		if err := extra[g.name].leave(); err != nil {
			return err
		}
		return g.settle(l, begun)
	})
	for _, g := range l.groups {
		for _, m := range g.members {
			m.close()
		}
	}
}

// join begins to join; those that are in already have to be asked meanwhile.
func join(m member) member {
	done := make(chan error, 1)
	go func() { done <- m.join() }()
	return &joining{member: m, done: done}
}

// joining is a member whose first join is under way.
type joining struct {
	member
	done   chan error
	joined bool
}

func (j *joining) ask() (state, error) {
	if !j.joined {
		select {
		case err := <-j.done:
			if err != nil {
				return state{}, err
			}
			j.joined = true
		default:
			return state{}, nil
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
	l.partitions = size + size/5 + 1
	prepare(l)
	l.run(size)
}

// prepare makes the topic and wakes the coordinator of every group.
func prepare(l *load) {
	w := dial(l.address)
	defer w.close()
	create := kmsg.NewPtrCreateTopicsRequest()
	create.SetVersion(7)
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = l.topic, int32(l.partitions), 1
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
