package cluster

import (
	"reflect"
	"testing"
)

func TestLeaderChangesRoundTrip(t *testing.T) {
	tps := []TopicPartition{{Topic: "a", Partition: 0}, {Topic: "b", Partition: 7}}
	want := []LeaderChange{
		{TopicPartition: tps[0], Leader: 3, ISR: []BrokerID{3, 1}, ExpectEpoch: 9, ExpectVersion: 12, Unclean: true},
		{TopicPartition: tps[1], Leader: KeepLeader, ExpectEpoch: NoLeaderEpoch, ExpectVersion: AnyVersion},
	}
	got, err := DecodeLeaderChanges(tps, EncodeLeaderChanges(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := DecodeLeaderChanges(tps[:1], EncodeLeaderChanges(want)); err == nil {
		t.Error("two changes were taken for one partition")
	}
	done := LeaderChanged{Leader: 2, LeaderEpoch: 5, ControllerEpoch: 1, ZKVersion: 8, ISR: []BrokerID{2}}
	if got, err := DecodeLeaderChanged(done.Encode()); err != nil || !reflect.DeepEqual(got, done) {
		t.Errorf("%+v, %v, want %+v", got, err, done)
	}
}

func FuzzDecodeLeaderChanges(f *testing.F) {
	tps := []TopicPartition{{Topic: "a"}}
	f.Add(EncodeLeaderChanges([]LeaderChange{{TopicPartition: tps[0], Leader: 1, ISR: []BrokerID{1}}}))
	f.Add(LeaderChanged{Leader: 1, ISR: []BrokerID{1}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := DecodeLeaderChanges(tps, b); err == nil {
			again, err := DecodeLeaderChanges(tps, EncodeLeaderChanges(got))
			if err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("%+v became %+v, %v", got, again, err)
			}
		}
		if got, err := DecodeLeaderChanged(b); err == nil {
			if again, err := DecodeLeaderChanged(got.Encode()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("%+v became %+v, %v", got, again, err)
			}
		}
	})
}
