package rows_test

import (
	"encoding/json"
	"testing"

	"kctl/admin/model"
	"kctl/admin/rows"
)

// TestLogDirDocument is the golden document of a directory, an offline one and a silent broker.
func TestLogDirDocument(t *testing.T) {
	dirs := []model.LogDir{
		{Broker: 1, Path: "/a", Total: 100, Usable: 40, Replicas: []model.DirReplica{
			{Topic: "t", Partition: 0, Size: 10, Current: -1}, {Topic: "t", Partition: 1, Size: 3, OffsetLag: 7, Future: true, Current: 12}}},
		{Broker: 1, Path: "/b", Total: -1, Usable: -1, Err: "disk error"},
		{Broker: 2, Total: -1, Usable: -1, Err: "no answer in time"},
	}
	const want = `[{"broker":1,"dir":"/a","online":true,"sizeBytes":13,"usableBytes":40,"totalBytes":100,"replicas":[{"topic":"t","partition":0,"sizeBytes":10,"offsetLag":0}],` +
		`"futureReplicas":[{"topic":"t","partition":1,"sizeBytes":3,"offsetLag":7,"progressPercent":25}],"error":""},` +
		`{"broker":1,"dir":"/b","online":false,"sizeBytes":0,"usableBytes":null,"totalBytes":null,"replicas":[],"futureReplicas":[],"error":"disk error"},` +
		`{"broker":2,"dir":"","online":false,"sizeBytes":0,"usableBytes":null,"totalBytes":null,"replicas":[],"futureReplicas":[],"error":"no answer in time"}]`
	got, err := json.Marshal(rows.LogDirs(dirs))
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\n%s", err, got, want)
	}
	flat := rows.DirReplicas(dirs)
	if len(flat) != 4 || flat[1].Progress == nil || *flat[1].Progress != 25 || flat[3].Error != "no answer in time" || flat[3].Partition != -1 {
		t.Errorf("%+v", flat)
	}
	if s := rows.LogDirKind.Cells(rows.LogDirs(dirs)[0], false); s[5] != "13 B" || s[2] != "online" {
		t.Errorf("%q", s)
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := rows.SizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
