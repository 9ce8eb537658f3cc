package group

import "encoding/binary"

// subscriptionTopics adds the topics of a consumer's subscription (ConsumerProtocolSubscription: version,
// topics, then fields that do not matter here) to topics. False when the bytes are not a subscription.
func subscriptionTopics(b []byte, topics map[string]struct{}) bool {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(b[2:]))
	b = b[6:]
	if n < 0 || int(n) > len(b)/2 {
		return false
	}
	for range n {
		if len(b) < 2 {
			return false
		}
		l := int(int16(binary.BigEndian.Uint16(b)))
		b = b[2:]
		if l < 0 || l > len(b) {
			return false
		}
		topics[string(b[:l])] = struct{}{}
		b = b[l:]
	}
	return true
}
