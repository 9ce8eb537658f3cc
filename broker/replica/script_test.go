package replica

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/broker/invariant/scripts"
	"kctl/zkutil/cluster"
)

// TestScripts runs every story under testdata: a line at the margin is an event, the indented lines below it
// are the effects that must follow. Lines with # are comments. File names are the points they prove.
func TestScripts(t *testing.T) { scripts.Run(t, runScript) }

func runScript(t *testing.T, text string) string {
	var out strings.Builder
	s := &story{t: t, now: time.Unix(0, 0).UTC(), log: modelLog{}}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, l := range s.do(line) {
			fmt.Fprintln(&out, "  "+l)
		}
	}
	return out.String()
}

// story is one running script: a partition with a model of its log.
type story struct {
	t    *testing.T
	p    *Partition
	now  time.Time
	log  modelLog
	out  []string
	args map[string]string
}

// modelLog answers log effects in place of a disk.
type modelLog struct {
	start, end, hw int64
	epochs         []EpochEnd // epoch and its start offset, rising
	failed         bool
	topicID        cluster.TopicID
}

func (l *modelLog) lastEpoch() cluster.LeaderEpoch {
	for i := len(l.epochs) - 1; i >= 0; i-- {
		if l.epochs[i].Offset < l.end && l.end > l.start {
			return l.epochs[i].Epoch
		}
	}
	return cluster.NoLeaderEpoch
}

// EndOffsetForEpoch is that of Kafka's epoch cache.
func (l *modelLog) EndOffsetForEpoch(epoch cluster.LeaderEpoch) (cluster.LeaderEpoch, int64) {
	n := len(l.epochs)
	if n == 0 || epoch > l.epochs[n-1].Epoch || epoch < 0 {
		return -1, -1
	}
	if epoch == l.epochs[n-1].Epoch {
		return epoch, l.end
	}
	if epoch < l.epochs[0].Epoch {
		return epoch, l.epochs[0].Offset
	}
	i := n - 1
	for l.epochs[i].Epoch > epoch {
		i--
	}
	return l.epochs[i].Epoch, l.epochs[i+1].Offset
}

// assign is Kafka's rule too: an epoch that is known keeps its earlier start (a leader restarted within it).
func (l *modelLog) assign(epoch cluster.LeaderEpoch, offset int64) {
	if n := len(l.epochs); n > 0 && l.epochs[n-1].Epoch == epoch && l.epochs[n-1].Offset <= offset {
		return
	}
	for n := len(l.epochs); n > 0 && (l.epochs[n-1].Epoch >= epoch || l.epochs[n-1].Offset >= offset); n-- {
		l.epochs = l.epochs[:n-1]
	}
	l.epochs = append(l.epochs, EpochEnd{epoch, offset})
}

func (l *modelLog) truncate(to int64) {
	l.end = min(l.end, to)
	for n := len(l.epochs); n > 0 && l.epochs[n-1].Offset >= to; n-- {
		l.epochs = l.epochs[:n-1]
	}
}

// answer carries out a log effect.
func (l *modelLog) answer(eff Effect, at time.Time) Event {
	switch eff := eff.(type) {
	case OpenLog:
		if l.topicID.IsZero() {
			l.topicID = eff.TopicID
		}
		return LogOpened{At: at, LogStart: l.start, LogEnd: l.end, HighWatermark: l.hw, LastEpoch: l.lastEpoch(),
			EmptyEpoch: len(l.epochs) > 0 && l.epochs[len(l.epochs)-1].Epoch != l.lastEpoch(), TopicID: l.topicID, Failed: l.failed}
	case AssignEpochStart:
		l.assign(eff.Epoch, eff.Offset)
		return EpochStartAssigned{At: at, Failed: l.failed}
	case TruncateTo:
		l.truncate(eff.Offset)
		return Truncated{At: at, LogStart: l.start, LogEnd: l.end, LastEpoch: l.lastEpoch(), Failed: l.failed}
	case TruncateFullyAndStartAt:
		*l = modelLog{start: eff.Offset, end: eff.Offset, failed: l.failed, topicID: l.topicID}
		return Truncated{At: at, LogStart: l.start, LogEnd: l.end, LastEpoch: l.lastEpoch(), Failed: l.failed}
	case AdvanceLogStart:
		l.start = max(l.start, eff.Offset)
		return LogStartAdvanced{At: at, LogStart: l.start, Failed: l.failed}
	case DeleteLog:
		*l = modelLog{}
	}
	return nil
}

func (s *story) step(ev Event) {
	for events := []Event{ev}; len(events) > 0; events = events[1:] {
		for _, eff := range s.p.Step(events[0], nil) {
			s.out = append(s.out, describe(eff))
			if answer := s.log.answer(eff, s.now); answer != nil {
				events = append(events, answer)
			}
		}
	}
}

func (s *story) do(line string) []string {
	words := strings.Fields(line)
	s.out, s.args = nil, map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		s.args[k] = v
	}
	verb, ok := verbs[words[0]]
	if !ok {
		s.t.Fatalf("unknown verb in %q", line)
	}
	verb(s)
	return s.out
}

func (s *story) has(k string) bool { _, ok := s.args[k]; return ok }

func (s *story) num(k string, def int64) int64 {
	v, ok := s.args[k]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		s.t.Fatalf("%s=%s is no number", k, v)
	}
	return n
}

func (s *story) ids(k string) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, w := range strings.Split(s.args[k], ",") {
		if w != "" {
			n, _ := strconv.Atoi(w)
			out = append(out, cluster.BrokerID(n))
		}
	}
	return out
}

func (s *story) epochEnd(k string) EpochEnd {
	e, o, ok := strings.Cut(s.args[k], ":")
	if !ok {
		return UndefinedEpochEnd
	}
	ee, _ := strconv.Atoi(e)
	oo, _ := strconv.Atoi(o)
	return EpochEnd{cluster.LeaderEpoch(ee), int64(oo)}
}

func (s *story) say(format string, args ...any) { s.out = append(s.out, fmt.Sprintf(format, args...)) }

var verbs = map[string]func(*story){
	"new": func(s *story) {
		s.p = New(Config{Self: cluster.BrokerID(s.num("self", 1)), LagTimeMax: time.Duration(s.num("lag", 30)) * time.Second,
			MinInSync: int(s.num("min", 1))})
	},
	// log describes what lies on disk: epochs=epoch:start,epoch:start
	"log": func(s *story) {
		s.log.start, s.log.end, s.log.hw = s.num("start", 0), s.num("end", 0), s.num("hw", 0)
		s.log.failed = s.has("fails")
		s.log.epochs = nil
		s.log.topicID = cluster.TopicID{byte(s.num("topic", 0))}
		for _, w := range strings.Split(s.args["epochs"], ",") {
			if w != "" {
				s.args["one"] = w
				s.log.epochs = append(s.log.epochs, s.epochEnd("one"))
			}
		}
	},
	"wait": func(s *story) {
		for k := range s.args {
			d, err := time.ParseDuration(k)
			if err != nil {
				s.t.Fatal(err)
			}
			s.now = s.now.Add(d)
		}
	},
	"leader-and-isr": func(s *story) {
		ev := LeaderAndISR{At: s.now, ControllerEpoch: cluster.ControllerEpoch(s.num("controller", 1)),
			Leader: cluster.BrokerID(s.num("leader", -1)), LeaderEpoch: cluster.LeaderEpoch(s.num("epoch", 0)), ISR: s.ids("isr"),
			ZKVersion: cluster.ZKVersion(s.num("version", 0)), Replicas: s.ids("replicas"), Adding: s.ids("adding"),
			IsNew: s.has("new"), TopicID: cluster.TopicID{byte(s.num("topic", 0))}}
		if ev.Replicas == nil {
			ev.Replicas = []cluster.BrokerID{1, 2, 3}
		}
		s.step(ev)
	},
	"stop-replica": func(s *story) {
		s.step(StopReplica{At: s.now, LeaderEpoch: cluster.LeaderEpoch(s.num("epoch", -1)), Delete: s.has("delete")})
	},
	"produce": func(s *story) { // records=N acks=all
		acks := int16(1)
		if s.has("all") {
			acks = AllReplicas
		}
		if code := s.p.CheckProduce(s.now, acks); code != CodeNone {
			s.say("refused %s", code)
			return
		}
		s.log.end += s.num("records", 1)
		s.step(Appended{At: s.now, LogEnd: s.log.end})
	},
	"acked": func(s *story) {
		done, code := s.p.CheckAcked(s.num("below", 0))
		s.say("done=%v %s", done, code)
	},
	"fetch": func(s *story) { // of a follower
		id := cluster.BrokerID(s.num("from", 2))
		q := FetchQuery{Replica: id, CurrentEpoch: cluster.LeaderEpoch(s.num("epoch", int64(s.p.LeaderEpoch()))),
			LastFetchedEpoch: cluster.LeaderEpoch(s.num("last", -1)), Offset: s.num("offset", 0)}
		v := s.p.CheckFetch(q, &s.log)
		if v.HigherEpoch {
			s.step(HigherEpochSeen{At: s.now, Replica: id, LeaderEpoch: q.CurrentEpoch})
		}
		switch {
		case v.Code != CodeNone:
			s.say("refused %s", v.Code)
			return
		case v.Diverging != nil:
			s.say("diverging epoch=%d end=%d", v.Diverging.Epoch, v.Diverging.Offset)
			return
		}
		s.step(FollowerFetched{At: s.now, Replica: id, FetchOffset: q.Offset, LogStart: 0, Alive: !s.has("dead"),
			ReplicaEpoch: cluster.BrokerEpoch(s.num("broker-epoch", -1))})
		s.say("gets %d..%d hw=%d", q.Offset, v.Bound, s.p.HighWatermark())
	},
	"consume": func(s *story) {
		v := s.p.CheckFetch(FetchQuery{Replica: Consumer, CurrentEpoch: cluster.LeaderEpoch(s.num("epoch", -1)), LastFetchedEpoch: -1,
			Offset: s.num("offset", 0), AnyReplica: s.has("any")}, &s.log)
		switch {
		case v.Code != CodeNone:
			s.say("refused %s leader=%d", v.Code, v.Leader)
		case v.Bound <= s.num("offset", 0):
			s.say("gets nothing hw=%d", v.HighWatermark)
		default:
			s.say("gets %d..%d hw=%d", s.num("offset", 0), v.Bound, v.HighWatermark)
		}
	},
	"list": func(s *story) {
		v := s.p.CheckListOffsets(ListQuery{Replica: cluster.BrokerID(s.num("from", -1)), CurrentEpoch: cluster.LeaderEpoch(s.num("epoch", -1)),
			Earliest: s.has("earliest"), HasOffsetNotAvailable: !s.has("v4")})
		s.say("%s below=%d start=%d epoch=%d", v.Code, v.Bound, v.LogStart, v.LeaderEpoch)
	},
	"epoch-end": func(s *story) {
		if code := s.p.CheckEpoch(cluster.LeaderEpoch(s.num("epoch", -1))); code != CodeNone {
			s.say("refused %s", code)
			return
		}
		e, o := s.log.EndOffsetForEpoch(cluster.LeaderEpoch(s.num("of", 0)))
		s.say("epoch=%d end=%d", e, o)
	},
	"seen": func(s *story) {
		s.step(FollowerSeen{At: s.now, Replica: cluster.BrokerID(s.num("from", 2)), Alive: true})
	},
	"replica-down": func(s *story) { s.step(ReplicaDown{At: s.now, Replica: cluster.BrokerID(s.num("id", 2))}) },
	"tick":         func(s *story) { s.step(Tick{At: s.now}) },
	"min-isr":      func(s *story) { s.step(ConfigChanged{At: s.now, MinInSync: int(s.num("to", 1))}) },
	"isr-written": func(s *story) {
		out := map[bool]Outcome{true: Written, false: Refused}[s.has("ok")]
		if s.has("unknown") {
			out = Unknown
		}
		ifv := cluster.ZKVersion(s.num("if-version", int64(s.p.ZKVersion())))
		s.step(ISRWritten{At: s.now, IfVersion: ifv, Outcome: out, Version: ifv + 1})
	},
	"state-read": func(s *story) {
		s.step(StateRead{At: s.now, OK: !s.has("failed"), Gone: s.has("gone"), Version: cluster.ZKVersion(s.num("version", 0)),
			State: cluster.LeaderAndISR{Leader: cluster.BrokerID(s.num("leader", -1)), LeaderEpoch: cluster.LeaderEpoch(s.num("epoch", 0)), ISR: s.ids("isr")}})
	},
	// answer is the leader's, to the fetch at our log end: records=N of epoch=E hw= start= | error= | diverging=e:o | corrupt
	"answer": func(s *story) {
		ev := FetchAnswered{At: s.now, LeaderEpoch: cluster.LeaderEpoch(s.num("sent-epoch", int64(s.p.LeaderEpoch()))),
			FetchOffset:  s.num("sent-offset", s.log.end),
			FetchedEpoch: cluster.LeaderEpoch(s.num("sent-last", int64(s.log.lastEpoch()))), Code: Code(s.num("error", 0)), HighWatermark: s.num("hw", -1),
			LogStart: s.num("start", 0), AppendFailed: s.has("corrupt")}
		if s.has("diverging") {
			d := s.epochEnd("diverging")
			e, o := s.log.EndOffsetForEpoch(d.Epoch)
			ev.Diverging, ev.LocalEnd = &d, EpochEnd{e, o}
		}
		if n := s.num("records", 0); n > 0 {
			if !s.p.AcceptsFetch(ev.LeaderEpoch, ev.FetchOffset, ev.FetchedEpoch) {
				s.say("records are not taken")
				return
			}
			if e := cluster.LeaderEpoch(s.num("of", int64(ev.LeaderEpoch))); s.log.lastEpoch() != e {
				s.log.assign(e, s.log.end)
			}
			s.log.end += n
		}
		ev.LogEnd, ev.LastEpoch = s.log.end, s.log.lastEpoch()
		s.step(ev)
	},
	"fetch-lost": func(s *story) {
		s.step(FetchLost{At: s.now, LeaderEpoch: cluster.LeaderEpoch(s.num("sent-epoch", int64(s.p.LeaderEpoch())))})
	},
	"leader-asked": func(s *story) {
		ev := LeaderAsked{At: s.now, LeaderEpoch: s.p.LeaderEpoch(), Code: Code(s.num("error", 0)), LogStart: s.num("start", 0),
			LogEnd: s.num("end", 0), EpochEnd: s.epochEnd("epoch-end")}
		e, o := s.log.EndOffsetForEpoch(ev.EpochEnd.Epoch)
		ev.LocalEnd = EpochEnd{e, o}
		s.step(ev)
	},
	"retention": func(s *story) { // moves the log start
		s.log.start = s.num("to", 0)
		s.step(LogStartAdvanced{At: s.now, LogStart: s.log.start})
	},
	"disk-failed": func(s *story) { s.step(LogFailed{At: s.now}) },
	"level":       func(s *story) { s.say("%v", s.p.Level()) }, // whether a throttle must let it fetch
	"show": func(s *story) {
		pending, blocked := s.p.ISRChangePending()
		s.say("%s epoch=%d leader=%d isr=%v version=%d log=%d..%d hw=%d pending=%v blocked=%v", s.p.Role(), s.p.LeaderEpoch(),
			s.p.Leader(), s.p.ISR(), s.p.ZKVersion(), s.p.LogStart(), s.p.LogEnd(), s.p.HighWatermark(), pending, blocked)
	},
}

// describe prints an effect as one line.
func describe(eff Effect) string {
	switch eff := eff.(type) {
	case OpenLog:
		return fmt.Sprintf("open-log new=%v", eff.IsNew)
	case AssignEpochStart:
		return fmt.Sprintf("assign-epoch-start epoch=%d offset=%d", eff.Epoch, eff.Offset)
	case TruncateTo:
		return fmt.Sprintf("truncate-to %d", eff.Offset)
	case TruncateFullyAndStartAt:
		return fmt.Sprintf("truncate-fully-and-start-at %d", eff.Offset)
	case AdvanceLogStart:
		return fmt.Sprintf("advance-log-start %d", eff.Offset)
	case DeleteLog:
		return "delete-log"
	case SetHighWatermark:
		return fmt.Sprintf("high-watermark %d", eff.Offset)
	case WriteISR:
		return fmt.Sprintf("write-isr %v leader=%d epoch=%d controller=%d if-version=%d", eff.ISR, eff.Leader, eff.LeaderEpoch, eff.ControllerEpoch, eff.IfVersion)
	case ReadState:
		return "read-state"
	case NotifyISRChange:
		return "notify-controller"
	case StartFetching:
		return fmt.Sprintf("start-fetching leader=%d epoch=%d from=%d last=%d", eff.Leader, eff.LeaderEpoch, eff.From, eff.LastEpoch)
	case StopFetching:
		return "stop-fetching"
	case FetchFrom:
		return fmt.Sprintf("fetch-from %d last=%d", eff.Offset, eff.LastEpoch)
	case BackOff:
		return fmt.Sprintf("back-off %s retry=%d", eff.Code, eff.Retry)
	case AskLeader:
		return fmt.Sprintf("ask-leader %d epoch=%d last=%d", eff.Leader, eff.LeaderEpoch, eff.LastEpoch)
	case FailWaiting:
		return fmt.Sprintf("fail-waiting %s", eff.Code)
	case Answer:
		return fmt.Sprintf("answer %s", eff.Code)
	case RoleChanged:
		return fmt.Sprintf("role %s -> %s leader=%d epoch=%d isr=%v version=%d", eff.From, eff.To, eff.Leader, eff.LeaderEpoch, eff.ISR, eff.ZKVersion)
	case ISRChanged:
		return fmt.Sprintf("isr %v -> %v version=%d (%s)", eff.From, eff.To, eff.ZKVersion, eff.Reason)
	case ISRChangeBlocked:
		return fmt.Sprintf("isr-change-blocked wanted=%v if-version=%d found=%v of leader %d epoch=%d at-version=%d", eff.Wanted, eff.IfVersion, eff.Found.ISR, eff.Found.Leader, eff.Found.LeaderEpoch, eff.FoundAt)
	case Deposed:
		return fmt.Sprintf("deposed epoch=%d seen=%d by=%d", eff.LeaderEpoch, eff.Seen, eff.Replica)
	case LogCut:
		return fmt.Sprintf("log-cut %d -> %d hw=%d below-hw=%v (%s)", eff.From, eff.To, eff.HighWatermark, eff.BelowHighWatermark, eff.Reason)
	}
	return fmt.Sprintf("%T", eff)
}
