package admin

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestHandOut: what the brokers sent is printed before the next answer is waited for, also at the end of --max-messages, and a
// reader that went away ends it. A burst's last records once stayed in the buffer until another record came.
func TestHandOut(t *testing.T) {
	cl, err := kgo.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	records := []*kgo.Record{{Topic: "t", Offset: 0}, {Topic: "t", Offset: 1}, {Topic: "t", Offset: 2}}
	fs := kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "t", Partitions: []kgo.FetchPartition{{Records: records}}}}}}
	broken := errors.New("nobody reads")
	for _, tt := range []struct {
		max     int64
		drained error
		log     []string
		full    bool
	}{
		{0, nil, []string{"0", "1", "2", "drained"}, false},
		{2, nil, []string{"0", "1", "drained"}, true},
		{0, broken, []string{"0", "1", "2", "drained"}, false},
	} {
		var log []string
		var n int64
		o := ConsumeOptions{Topic: "t", Max: tt.max, Drained: func() error { log = append(log, "drained"); return tt.drained }}
		full, err := handOut(cl, fs, &n, o, nil, func(r *Record) error { log = append(log, fmt.Sprint(r.Offset)); return nil })
		if !slices.Equal(log, tt.log) || full != tt.full || !errors.Is(err, tt.drained) || n != int64(len(tt.log)-1) {
			t.Errorf("max %d: %v full %v n %d %v", tt.max, log, full, n, err)
		}
	}
}
