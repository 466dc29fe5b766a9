package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerMember speaks the newer protocol: it takes what it is given and gives back what it is
// asked for, at once.
type consumerMember struct {
	wire  *wire
	group string
	topic string
	id    string
	epoch int32
	owned []kmsg.ConsumerGroupHeartbeatRequestTopic
	held  int
	// It has a new assignment that the coordinator does not know to be taken yet.
	owes bool
}

func newConsumerMember(w *wire, group, topic string) *consumerMember {
	var id [16]byte
	rand.Read(id[:])
	return &consumerMember{wire: w, group: group, topic: topic, id: hex.EncodeToString(id[:])}
}

func (m *consumerMember) heartbeat(epoch int32, full bool) error {
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.SetVersion(1)
	request.Group, request.MemberID, request.MemberEpoch = m.group, m.id, epoch
	if full {
		request.RebalanceTimeoutMillis = sessionMillis
		request.SubscribedTopicNames = []string{m.topic}
		request.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	} else if m.owes {
		request.Topics = append([]kmsg.ConsumerGroupHeartbeatRequestTopic{}, m.owned...)
	}
	answer, err := m.wire.call(request)
	if err != nil {
		return err
	}
	beat := answer.(*kmsg.ConsumerGroupHeartbeatResponse)
	if beat.ErrorCode != 0 {
		return fmt.Errorf("%s: ConsumerGroupHeartbeat: error %d", m.group, beat.ErrorCode)
	}
	m.epoch, m.owes = beat.MemberEpoch, false
	if beat.Assignment == nil {
		return nil
	}
	m.owes, m.owned, m.held = true, nil, 0
	for _, given := range beat.Assignment.Topics {
		topic := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		topic.TopicID, topic.Partitions = given.TopicID, given.Partitions
		m.owned = append(m.owned, topic)
		m.held += len(given.Partitions)
	}
	return nil
}

func (m *consumerMember) join() error { return m.heartbeat(0, true) }

func (m *consumerMember) ask() (state, error) {
	for again := true; again; again = m.owes {
		if err := m.heartbeat(m.epoch, false); err != nil {
			return state{}, err
		}
	}
	return state{joined: true, epoch: m.epoch, held: m.held}, nil
}

func (m *consumerMember) leave() error {
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.SetVersion(1)
	request.Group, request.MemberID, request.MemberEpoch = m.group, m.id, -1
	_, err := m.wire.call(request)
	return err
}

func (m *consumerMember) close() { m.wire.close() }
