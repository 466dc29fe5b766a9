package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	rebalanceInProgress = 27
	memberIDRequired    = 79
	sessionMillis       = 120_000
)

// classicMember joins and syncs; as the leader it gives every member its share in turn.
type classicMember struct {
	wire       *wire
	group      string
	topic      string
	partitions int
	id         string
	generation int32
	// The members of the generation, as its leader counted them into each assignment.
	members int
	held    int
}

func (m *classicMember) join() error {
	for {
		request := kmsg.NewPtrJoinGroupRequest()
		request.SetVersion(9)
		request.Group, request.MemberID = m.group, m.id
		request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = sessionMillis, sessionMillis
		request.ProtocolType = "consumer"
		protocol := kmsg.NewJoinGroupRequestProtocol()
		protocol.Name = "range"
		subscription := kmsg.NewConsumerMemberMetadata()
		subscription.Topics = []string{m.topic}
		protocol.Metadata = subscription.AppendTo(nil)
		request.Protocols = append(request.Protocols, protocol)
		answer, err := m.wire.call(request)
		if err != nil {
			return err
		}
		joined := answer.(*kmsg.JoinGroupResponse)
		switch joined.ErrorCode {
		case memberIDRequired:
			m.id = joined.MemberID
			continue
		case rebalanceInProgress:
			continue
		case 0:
		default:
			return fmt.Errorf("%s: JoinGroup: error %d", m.group, joined.ErrorCode)
		}
		m.id, m.generation = joined.MemberID, joined.Generation
		again, err := m.sync(joined)
		if err != nil || !again {
			return err
		}
	}
}

// sync says whether the member has to join again.
func (m *classicMember) sync(joined *kmsg.JoinGroupResponse) (bool, error) {
	request := kmsg.NewPtrSyncGroupRequest()
	request.SetVersion(5)
	request.Group, request.Generation, request.MemberID = m.group, m.generation, m.id
	request.ProtocolType, request.Protocol = joined.ProtocolType, joined.Protocol
	if joined.LeaderID == m.id {
		request.GroupAssignment = m.assign(joined)
	}
	answer, err := m.wire.call(request)
	if err != nil {
		return false, err
	}
	synced := answer.(*kmsg.SyncGroupResponse)
	switch synced.ErrorCode {
	case 0:
	case rebalanceInProgress:
		return true, nil
	default:
		return false, fmt.Errorf("%s: SyncGroup: error %d", m.group, synced.ErrorCode)
	}
	assignment := kmsg.NewConsumerMemberAssignment()
	if err := assignment.ReadFrom(synced.MemberAssignment); err != nil {
		return false, err
	}
	// The leader has put the number of members into the user data.
	m.members, m.held = 0, 0
	for _, topic := range assignment.Topics {
		m.held += len(topic.Partitions)
	}
	for _, digit := range assignment.UserData {
		m.members = m.members*10 + int(digit-'0')
	}
	return false, nil
}

func (m *classicMember) assign(joined *kmsg.JoinGroupResponse) []kmsg.SyncGroupRequestGroupAssignment {
	count := len(joined.Members)
	var all []kmsg.SyncGroupRequestGroupAssignment
	for i, member := range joined.Members {
		topic := kmsg.NewConsumerMemberAssignmentTopic()
		topic.Topic = m.topic
		for p := i; p < m.partitions; p += count {
			topic.Partitions = append(topic.Partitions, int32(p))
		}
		assignment := kmsg.NewConsumerMemberAssignment()
		assignment.Topics = append(assignment.Topics, topic)
		assignment.UserData = []byte(fmt.Sprint(count))
		given := kmsg.NewSyncGroupRequestGroupAssignment()
		given.MemberID, given.MemberAssignment = member.MemberID, assignment.AppendTo(nil)
		all = append(all, given)
	}
	return all
}

func (m *classicMember) ask() (state, error) {
	request := kmsg.NewPtrHeartbeatRequest()
	request.SetVersion(4)
	request.Group, request.Generation, request.MemberID = m.group, m.generation, m.id
	answer, err := m.wire.call(request)
	if err != nil {
		return state{}, err
	}
	switch code := answer.(*kmsg.HeartbeatResponse).ErrorCode; code {
	case 0:
	case rebalanceInProgress:
		err = m.join()
	default:
		err = fmt.Errorf("%s: Heartbeat: error %d", m.group, code)
	}
	return state{joined: true, epoch: m.generation, members: m.members, held: m.held}, err
}

func (m *classicMember) leave() error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.SetVersion(5)
	request.Group = m.group
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = m.id
	request.Members = append(request.Members, leaving)
	_, err := m.wire.call(request)
	return err
}

func (m *classicMember) close() { m.wire.close() }
