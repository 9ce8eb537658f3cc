package group

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/broker/invariant/scripts"
	"kctl/zkutil/cluster"
)

// TestScripts runs testdata/*.txt: one command a line, the effects that it must have below "----". The
// clock stands still but for tick, which fires the timers that come due. Appends are answered by hand.
func TestScripts(t *testing.T) { scripts.Run(t, runScript) }

func runScript(t *testing.T, text string) string {
	env := newScriptEnv(t)
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		got := env.run(line)
		if i+1 < len(lines) && lines[i+1] == "----" { // what was wanted
			for i += 2; i < len(lines) && lines[i] != ""; i++ {
			}
			i--
		}
		out.WriteString(line + "\n")
		if len(got) > 0 {
			out.WriteString("----\n" + strings.Join(got, "\n") + "\n")
			if i+1 < len(lines) && lines[i+1] != "" {
				out.WriteString("\n") // a blank line ends the effects
			}
		}
	}
	return out.String()
}

// scriptEnv is a shard with a clock and the timers that it asked for.
type scriptEnv struct {
	t      *testing.T
	shard  *Shard
	loader *Loader
	cfg    Config
	start  time.Time
	now    time.Time
	timers []ArmTimer
}

func newScriptEnv(t *testing.T) *scriptEnv {
	cfg := Config{
		SessionTimeoutMin: 6 * time.Second, SessionTimeoutMax: 30 * time.Minute, InitialRebalanceDelay: 3 * time.Second,
		MaxSize: 100, OffsetMetadataMax: 16, OffsetsRetention: time.Hour,
	}
	start := time.UnixMilli(1_000_000)
	return &scriptEnv{t: t, shard: NewShard(cfg), loader: NewLoader(), cfg: cfg, start: start, now: start}
}

func (e *scriptEnv) step(ev Event) []string {
	effects := e.shard.Step(ev, nil)
	if e.shard.unloaded {
		return e.show(effects)
	}
	for _, id := range sortedKeys(e.shard.groups) {
		checkGroup(e.t, e.shard.groups[id])
	}
	return e.show(effects)
}

func (e *scriptEnv) show(effects []Effect) []string {
	var lines []string
	for _, eff := range effects {
		if a, ok := eff.(ArmTimer); ok {
			e.timers = append(e.timers, a)
			lines = append(lines, fmt.Sprintf("arm %v %s at %v", a.Timer.Kind, strings.TrimSuffix(a.Timer.Group+"/"+a.Timer.Member, "/"), a.At.Sub(e.start)))
			continue
		}
		lines = append(lines, showEffect(eff)...)
	}
	return lines
}

// tick moves the clock and fires what comes due, in order.
func (e *scriptEnv) tick(d time.Duration) []string {
	end := e.now.Add(d)
	var lines []string
	for {
		slices.SortStableFunc(e.timers, func(a, b ArmTimer) int { return a.At.Compare(b.At) })
		if len(e.timers) == 0 || e.timers[0].At.After(end) {
			e.now = end
			return lines
		}
		next := e.timers[0]
		e.timers = e.timers[1:]
		if next.At.After(e.now) {
			e.now = next.At
		}
		if got := e.step(TimerFired{At: e.now, Timer: next.Timer}); len(got) > 0 {
			lines = append(lines, fmt.Sprintf("[%v]", e.now.Sub(e.start)))
			lines = append(lines, got...)
		}
	}
}

// args are the key=value words of a command; "~" is the empty text.
type args map[string]string

func (a args) opt(k string) *string {
	if v, ok := a[k]; ok {
		return &v
	}
	return nil
}

func (a args) dur(k string, def time.Duration) time.Duration {
	if v, ok := a[k]; ok {
		d, err := time.ParseDuration(v)
		if err != nil {
			panic(err)
		}
		return d
	}
	return def
}

func (a args) num(k string, def int64) int64 {
	if v, ok := a[k]; ok {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	return def
}

func (a args) has(k string) bool { _, ok := a[k]; return ok }

func (a args) group() string {
	if v, ok := a["g"]; ok {
		return v
	}
	return "g"
}

func parseLine(line string) (string, args) {
	words := strings.Fields(line)
	a := args{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		if v == "~" {
			v = ""
		}
		a[k] = v
	}
	return words[0], a
}

func (e *scriptEnv) run(line string) []string {
	verb, a := parseLine(line)
	req := RequestID(a.num("r", 0))
	switch verb {
	case "config":
		return e.config(a)
	case "tick":
		return e.tick(a.dur("d", 0))
	case "join":
		return e.step(e.joinEvent(a, req))
	case "sync":
		return e.step(syncEvent(a, req, e.now))
	case "heartbeat":
		return e.step(Heartbeat{At: e.now, Request: req, Group: a.group(), MemberID: a["member"], InstanceID: a.opt("instance"), Generation: int32(a.num("gen", 0))})
	case "leave":
		return e.step(Leave{At: e.now, Request: req, Group: a.group(), Members: leavers(a["members"])})
	case "commit":
		return e.step(e.commitEvent(a, req))
	case "end-txn":
		return e.step(EndTransaction{At: e.now, ProducerID: a.num("pid", 0), Commit: a.has("commit")})
	case "fetch":
		return e.fetch(a)
	case "delete":
		return e.step(DeleteGroup{At: e.now, Request: req, Group: a.group()})
	case "delete-offsets":
		return e.step(DeleteOffsets{At: e.now, Request: req, Group: a.group(), Partitions: tps(a["tps"])})
	case "topics-deleted":
		return e.step(TopicsDeleted{At: e.now, Topics: strings.Split(a["topics"], ",")})
	case "expire":
		return e.step(Expire{At: e.now})
	case "appended":
		return e.step(Appended{At: e.now, ID: AppendID(a.num("id", 0)), Code: codeNamed(a["code"])})
	case "unload":
		return e.step(Unload{At: e.now})
	case "state", "list", "describe":
		return e.query(verb, a)
	case "load-group", "load-offset", "load-marker", "install":
		return e.load(verb, a)
	}
	e.t.Fatalf("unknown command %q", line)
	return nil
}

func (e *scriptEnv) config(a args) []string {
	e.cfg.MaxSize = int(a.num("max-size", int64(e.cfg.MaxSize)))
	e.cfg.InitialRebalanceDelay = a.dur("initial-delay", e.cfg.InitialRebalanceDelay)
	e.cfg.OffsetsRetention = a.dur("retention", e.cfg.OffsetsRetention)
	e.shard.SetConfig(e.cfg)
	return nil
}

func (e *scriptEnv) joinEvent(a args, req RequestID) Join {
	j := Join{
		At: e.now, Request: req, Group: a.group(), MemberID: a["member"], InstanceID: a.opt("instance"),
		ClientID: "c", ClientHost: "/h", Suffix: fmt.Sprint(req), RequireKnownMemberID: a.has("known"),
		SkipAssignment: a.has("skip"), SessionTimeout: a.dur("session", 10*time.Second),
		RebalanceTimeout: a.dur("rebalance", 60*time.Second), ProtocolType: "consumer",
	}
	if v, ok := a["type"]; ok {
		j.ProtocolType = v
	}
	protos := "range:m"
	if v, ok := a["protos"]; ok {
		protos = v
	}
	for _, p := range strings.Split(protos, ",") {
		if p == "" {
			continue
		}
		name, meta, _ := strings.Cut(p, ":")
		j.Protocols = append(j.Protocols, Protocol{name, []byte(meta)})
	}
	if topics, ok := a["topics"]; ok {
		for i := range j.Protocols {
			j.Protocols[i].Metadata = subscription(strings.Split(topics, ","))
		}
	}
	return j
}

// subscription encodes a ConsumerProtocolSubscription v0.
func subscription(topics []string) []byte {
	b := []byte{0, 0, 0, 0, 0, byte(len(topics))}
	for _, t := range topics {
		b = append(append(b, 0, byte(len(t))), t...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}

func syncEvent(a args, req RequestID, at time.Time) Sync {
	s := Sync{
		At: at, Request: req, Group: a.group(), MemberID: a["member"], InstanceID: a.opt("instance"),
		Generation: int32(a.num("gen", 0)), ProtocolType: a.opt("type"), Protocol: a.opt("proto"),
	}
	for _, p := range strings.Split(a["assign"], ",") {
		if id, data, ok := strings.Cut(p, ":"); ok {
			s.Assignments = append(s.Assignments, Assigned{id, []byte(data)})
		}
	}
	return s
}

func leavers(text string) []Leaver {
	var out []Leaver
	for _, w := range strings.Split(text, ",") {
		id, instance, static := strings.Cut(w, "/")
		l := Leaver{MemberID: id}
		if static {
			l.InstanceID = &instance
		}
		out = append(out, l)
	}
	return out
}

func (e *scriptEnv) commitEvent(a args, req RequestID) CommitOffsets {
	c := CommitOffsets{
		At: e.now, Request: req, Group: a.group(), MemberID: a["member"], InstanceID: a.opt("instance"),
		Generation: int32(a.num("gen", -1)), ProducerID: a.num("pid", NoProducer), ProducerEpoch: -1,
	}
	for _, w := range strings.Split(a["offsets"], ",") {
		c.Offsets = append(c.Offsets, e.offset(w, a))
	}
	return c
}

// offset reads topic-partition:offset[:metadata].
func (e *scriptEnv) offset(w string, a args) PartitionOffset {
	parts := strings.SplitN(w, ":", 3)
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		e.t.Fatal(err)
	}
	o := Offset{Offset: n, LeaderEpoch: -1, CommitTimestamp: e.now.UnixMilli(), ExpireTimestamp: -1}
	if len(parts) == 3 {
		o.Metadata = parts[2]
	}
	if a.has("expire") {
		o.ExpireTimestamp = e.now.Add(a.dur("expire", 0)).UnixMilli()
	}
	return PartitionOffset{tps(parts[0])[0], o}
}

func tps(text string) []cluster.TopicPartition {
	var out []cluster.TopicPartition
	for _, w := range strings.Split(text, ",") {
		i := strings.LastIndexByte(w, '-')
		p, err := strconv.Atoi(w[i+1:])
		if err != nil {
			panic(err)
		}
		out = append(out, cluster.TopicPartition{Topic: w[:i], Partition: int32(p)})
	}
	return out
}

func codeNamed(name string) Code {
	for c := Code(-1); c < 130; c++ {
		if c.String() == name {
			return c
		}
	}
	if name == "ok" {
		return None
	}
	panic("no error code " + name)
}

func (e *scriptEnv) fetch(a args) []string {
	var want []cluster.TopicPartition
	if a.has("tps") {
		want = tps(a["tps"])
	}
	var lines []string
	for _, f := range e.shard.FetchOffsets(a.group(), want, !a.has("tps"), a.has("stable")) {
		line := fmt.Sprintf("%v %d", f.TP, f.Offset.Offset)
		if f.Metadata != "" {
			line += " " + f.Metadata
		}
		if f.Code != None {
			line += " " + f.Code.String()
		}
		lines = append(lines, line)
	}
	return lines
}

func (e *scriptEnv) query(verb string, a args) []string {
	var lines []string
	switch verb {
	case "state":
		for _, id := range sortedKeys(e.shard.groups) {
			lines = append(lines, showGroup(e.shard.groups[id]))
		}
	case "list":
		var states, types []string
		if a.has("states") {
			states = strings.Split(a["states"], ",")
		}
		if a.has("types") {
			types = strings.Split(a["types"], ",")
		}
		for _, o := range e.shard.List(states, types) {
			lines = append(lines, fmt.Sprintf("%s %q %v", o.Group, o.ProtocolType, o.State))
		}
	case "describe":
		d := e.shard.Describe(a.group())
		lines = append(lines, fmt.Sprintf("%v type=%q protocol=%q", d.State, d.ProtocolType, d.Protocol))
		for _, m := range d.Members {
			lines = append(lines, fmt.Sprintf("  %s%s %s %s metadata=%q assignment=%q", m.MemberID, showInstance(m.InstanceID), m.ClientID, m.ClientHost, m.Metadata, m.Assignment))
		}
	}
	return lines
}

func (e *scriptEnv) load(verb string, a args) []string {
	switch verb {
	case "load-group":
		e.loader.Group(e.groupRecord(a))
	case "load-offset":
		if a.has("tombstone") {
			e.loader.Offset(OffsetRecord{Group: a.group(), TP: tps(a["tp"])[0], Tombstone: true}, a.num("pid", NoProducer))
			return nil
		}
		o := e.offset(a["offset"], a)
		e.loader.Offset(OffsetRecord{Group: a.group(), TP: o.TP, Offset: o.Offset}, a.num("pid", NoProducer))
	case "load-marker":
		e.loader.Marker(a.num("pid", 0), a.has("commit"))
	case "install":
		return e.show(e.shard.Install(e.loader, e.now, nil))
	}
	return nil
}

func (e *scriptEnv) groupRecord(a args) GroupRecord {
	if a.has("tombstone") {
		return GroupRecord{Group: a.group(), Tombstone: true}
	}
	r := GroupRecord{Group: a.group(), ProtocolType: "consumer", Generation: int32(a.num("gen", 1)), Protocol: a.opt("proto"), Leader: a.opt("leader"), StateTimestamp: e.now.UnixMilli()}
	for _, id := range strings.Split(a["members"], ",") {
		if id != "" {
			r.Members = append(r.Members, MemberRecord{MemberID: id, SessionTimeout: 10 * time.Second, RebalanceTimeout: 60 * time.Second, Subscription: []byte("m"), Assignment: []byte("a-" + id)})
		}
	}
	return r
}
