package znode

import (
	"maps"
	"testing"

	"kctl/zkutil/cluster"
)

func TestDataEpochs(t *testing.T) {
	epochs := map[cluster.BrokerID]cluster.BrokerEpoch{3: 1 << 40, 1: 7}
	data := EncodeDataEpochs(epochs)
	if want := `{"version":1,"epochs":{"1":7,"3":1099511627776}}`; string(data) != want {
		t.Errorf("encoded %s, want %s", data, want)
	}
	got, err := DecodeDataEpochs(data)
	if err != nil || !maps.Equal(got, epochs) {
		t.Errorf("decoded %v, %v", got, err)
	}
	for _, bad := range []string{``, `{}`, `{"version":1}`, `{"version":1,"epochs":{"x":1}}`, `{"version":1,"epochs":{"1":"a"}}`, `{"version":1,"epochs":[]}`} {
		if got, err := DecodeDataEpochs([]byte(bad)); err == nil {
			t.Errorf("%q decoded as %v", bad, got)
		}
	}
}

func FuzzDataEpochs(f *testing.F) {
	f.Add([]byte(`{"version":1,"epochs":{"1":7}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		epochs, err := DecodeDataEpochs(data)
		if err != nil {
			return
		}
		if again, err := DecodeDataEpochs(EncodeDataEpochs(epochs)); err != nil || !maps.Equal(again, epochs) {
			t.Errorf("%q: %v, then %v, %v", data, epochs, again, err)
		}
	})
}
