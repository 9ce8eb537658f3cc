package reassign

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/zkutil/cluster"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "it is empty",
		"\xef\xbb\xbf ":            "it is empty",
		`{"version":1}`:            `it has no "partitions"`,
		`{"partitions":[]}`:        "it has no partitions to move",
		"{\"partitions\":[\n {,]}": "line 2, column 3: ",
		`{"version":1,"partitions":[{"topic":"k","partition":0,"replicas":[1],}]}`: "line 1, column 70: ",
		`{"version":1,"partitions":[`:                                                                            "ends too early",
		`{"version":2,"partitions":[]}`:                                                                          "version is 2",
		`{"partitions":[{"topic":"k","partition":"0","replicas":[1]}]}`:                                          "partition: string stands where a number from -2147483648 to 2147483647 belongs",
		`{"partitions":[{"topic":"k","partition":0}]}`:                                                           "entry 1 needs topic, partition and replicas",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[]}]}`:                                             "k:0 has an empty replica list",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[3,7,7]}]}`:                                        "k:0: broker 7 is in its replica list twice",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[-1]}]}`:                                           "k:0: broker id -1 is below zero",
		`{"partitions":[{"topic":"k","partition":-2,"replicas":[1]}]}`:                                           "partition -2 of topic k is below zero",
		`{"partitions":[{"topic":"k/k","partition":0,"replicas":[1]}]}`:                                          "not legal",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[1],"log_dirs":[]}]}`:                              "1 replicas and 0 log_dirs",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[1],"log_dirs":["d"]}]}`:                           `log directory "d" is neither`,
		`{"partitions":[{"topic":"k","partition":0,"replicas":[1]},{"topic":"k","partition":0,"replicas":[2]}]}`: "k:0 is in it twice",
		`{"partitions":[{"topic":"k","partition":0,"replicas":[1]}]} x`:                                          "more after the end",
	} {
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	got, err := Parse([]byte("\xef\xbb\xbf" + `{"partitions":[{"topic":"k","partition":1,"replicas":[3,1],"log_dirs":["any","/d"],"later":{}}]}` + "\n"))
	want := []Entry{{Topic: "k", Partition: 1, Replicas: []id{3, 1}, LogDirs: []string{"any", "/d"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestEncode holds the bytes of Kafka's own tool: no blanks, sorted, directories always.
func TestEncode(t *testing.T) {
	got := string(Encode([]Entry{{Topic: "b", Partition: 0, Replicas: []id{2}}, {Topic: "a", Partition: 10, Replicas: []id{3, 1}, LogDirs: []string{"any", "/d<é"}}, {Topic: "a", Partition: 2, Replicas: []id{1}}}))
	want := `{"version":1,"partitions":[{"topic":"a","partition":2,"replicas":[1],"log_dirs":["any"]},` +
		`{"topic":"a","partition":10,"replicas":[3,1],"log_dirs":["any","/d<é"]},{"topic":"b","partition":0,"replicas":[2],"log_dirs":["any"]}]}`
	if got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	if got := string(Encode(nil)); got != `{"version":1,"partitions":[]}` {
		t.Error(got)
	}
}

// FuzzParse: what is read is legal and comes back the same from what is written of it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"partitions":[{"topic":"k","partition":1,"replicas":[3,1],"log_dirs":["any","/d"]}]}`))
	f.Add([]byte(`{"partitions":[{"topic":"k","partition":1,"replicas":[3,1]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := Parse(data)
		if err != nil {
			return
		}
		for i := range entries {
			if len(entries[i].Replicas) == 0 || slices.Min(entries[i].Replicas) < 0 {
				t.Fatalf("%q gives %+v", data, entries[i])
			}
		}
		text := Encode(entries)
		back, err := Parse(text)
		if err != nil || !bytes.Equal(Encode(back), text) {
			t.Fatalf("%q becomes %s: %v", data, text, err)
		}
	})
}

func view() View {
	tp := func(p int32) cluster.TopicPartition { return cluster.TopicPartition{Topic: "k", Partition: p} }
	return View{
		Live: []id{1, 2, 3}, Known: []id{1, 2, 3, 4},
		Parts: map[cluster.TopicPartition]Seen{
			tp(0): {Replicas: []id{1, 2}, Leader: 1, ISR: []id{1, 2}},
			tp(1): {Replicas: []id{3, 1, 2}, Adding: []id{3}, Removing: []id{2}, Leader: 1},
			tp(2): {Replicas: []id{4, 1}, Leader: 1},
		},
		Sizes: map[cluster.TopicPartition]int64{tp(0): 10, tp(1): 20},
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		topic    string
		part     int32
		replicas []id
		o        Options
		want     string
	}{
		{"k", 0, []id{1, 2}, Options{}, "unchanged"},
		{"k", 0, []id{2, 1}, Options{}, "[1 2]>[2 1] 0"},
		{"k", 0, []id{3, 2}, Options{}, "[1 2]>[3 2] 10"},
		{"k", 0, []id{1, 99}, Options{}, "k:0: broker 99 does not exist; live are 1,2,3"},
		{"k", 0, []id{1, 4}, Options{AllowOffline: true}, "k:0: broker 4 is not live and would get a new replica; live are 1,2,3"},
		{"k", 2, []id{1, 4}, Options{}, "k:2: broker 4 is not live; --allow-offline keeps its replica; live are 1,2,3"},
		{"k", 2, []id{1, 4}, Options{AllowOffline: true}, "[4 1]>[1 4] 0 k:2 keeps a replica on broker 4, which is not live"},
		{"k", 2, []id{1}, Options{}, "[4 1]>[1] 0"},
		{"k", 7, []id{1}, Options{}, "k:7: topic k has no partition 7"},
		{"q", 0, []id{1}, Options{}, "q:0: topic q does not exist"},
		{"k", 1, []id{1, 2}, Options{}, "k:1 is being reassigned to 3,1 already"},
		{"k", 1, []id{1, 2}, Options{Override: true}, "busy [3 1]>[1 2] 20"},
		{"k", 1, []id{3, 1}, Options{}, "[1 2]>[3 1] 20"},
	} {
		r := Check([]Entry{{Topic: c.topic, Partition: c.part, Replicas: c.replicas}}, view(), c.o)
		var got []string
		if len(r.Unchanged) > 0 {
			got = append(got, "unchanged")
		}
		if len(r.Busy) > 0 {
			got = append(got, "busy")
		}
		for _, s := range r.Steps {
			got = append(got, fmt.Sprintf("%v>%v %d", s.From, s.Replicas, s.Bytes))
		}
		if s := strings.Join(slices.Concat(got, r.Refused, r.Warnings), " "); s != c.want {
			t.Errorf("%s:%d %v: %s, want %s", c.topic, c.part, c.replicas, s, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	v := view()
	for want, e := range map[State]Entry{
		Done: {Partition: 0, Replicas: []id{1, 2}}, Waiting: {Partition: 0, Replicas: []id{2, 1}}, Running: {Partition: 1, Replicas: []id{3, 1}},
		Other: {Partition: 1, Replicas: []id{1, 2}}, Missing: {Partition: 9, Replicas: []id{1}},
	} {
		e.Topic = "k"
		seen, ok := v.Parts[e.TP()]
		if got := Judge(&e, seen, ok); got != want {
			t.Errorf("%v: %s, want %s", e, got, want)
		}
	}
	queued := Seen{Replicas: []id{1, 2}, Queued: []id{2, 3}}
	if got := Judge(&Entry{Replicas: []id{2, 3}}, queued, true); got != Running {
		t.Errorf("queued: %s", got)
	}
}

func TestBatches(t *testing.T) {
	var steps []Step
	for i, b := range []int64{5, 5, 20, 1, 1, 1} {
		steps = append(steps, Step{Entry: Entry{Topic: "k", Partition: int32(i)}, Bytes: b})
	}
	for _, c := range []struct {
		parts int
		bytes int64
		want  []int
	}{{0, 0, []int{6}}, {4, 0, []int{4, 2}}, {0, 10, []int{2, 1, 3}}, {2, 10, []int{2, 1, 2, 1}}, {1, 1, []int{1, 1, 1, 1, 1, 1}}} {
		var got []int
		for _, b := range Batches(steps, c.parts, c.bytes) {
			got = append(got, len(b))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d %d: %v, want %v", c.parts, c.bytes, got, c.want)
		}
	}
}

func TestThrottle(t *testing.T) {
	step := func(topic string, p int32, from, to []id) Step {
		return Step{Entry: Entry{Topic: topic, Partition: p, Replicas: to}, From: from}
	}
	got := Throttle([]Step{step("b", 1, []id{1, -1}, []id{2, 1}), step("a", 0, []id{1, 2}, []id{2, 1}), step("b", 0, []id{1, 3}, []id{4, 3})})
	want := Throttled{Leader: map[string][]string{"b": {"0:1", "0:3", "1:1"}}, Follower: map[string][]string{"b": {"0:4", "1:2"}}, Brokers: []id{1, 2, 3, 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := MissingFrom("0:1, 9:9", []string{"0:1", "1:2"}); !slices.Equal(got, []string{"1:2"}) {
		t.Error(got)
	}
	if got := MissingFrom("*", []string{"0:1"}); got != nil {
		t.Error(got)
	}
	if got := Without("0:1,9:9,1:2", []string{"0:1", "1:2"}); got != "9:9" {
		t.Error(got)
	}
	if got := OfPartitions("0:1,10:9,1:2", []int32{1, 0}); !slices.Equal(got, []string{"0:1", "1:2"}) {
		t.Error(got)
	}
}

func TestProgress(t *testing.T) {
	seen := Seen{Replicas: []id{3, 1, 2}, Adding: []id{3}, Removing: []id{2}, ISR: []id{1}}
	sizes := map[id]int64{1: 90, 2: 100, 3: 25}
	c := CopiedOf(&seen, sizes, 3)
	if c != (Copied{25, 100}) || c.Left() != 75 || c.Percent() != 25 || Bar(c, 8) != "[==      ]" {
		t.Errorf("%+v %s", c, Bar(c, 8))
	}
	seen.ISR = append(seen.ISR, 3)
	if c := CopiedOf(&seen, sizes, 3); c.Left() != 0 {
		t.Errorf("in sync, and still %d to copy", c.Left())
	}
	var m Meter
	at := time.Unix(0, 0)
	m.Add(at, 0)
	if _, ok := m.ETA(10); ok || m.Rate() != 0 {
		t.Error("a rate of one sample")
	}
	m.Add(at.Add(10*time.Second), 50)
	if eta, ok := m.ETA(100); m.Rate() != 5 || !ok || eta != 20*time.Second {
		t.Errorf("%v %v", m.Rate(), eta)
	}
	m.Add(at.Add(50*time.Second), 50)
	if m.Rate() != 0 {
		t.Errorf("%v when nothing moves", m.Rate())
	}
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "50000000": 50000000, "1K": 1024, "5MiB": 5 << 20, "2 gb": 2 << 30, "1T": 1 << 40} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: %d %v", in, got, err)
		}
	}
	for _, in := range []string{"", "x", "-1", "1.5M", "1MM", "0x10", "99999999999999999999", "9000000T", "+5"} {
		if n, err := ParseSize(in); err == nil {
			t.Errorf("%q is %d", in, n)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 10 << 20: "10 MiB", 3 << 40: "3.0 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
