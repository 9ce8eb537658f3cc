package config

// The tables by name. They are built once and never changed.
var (
	brokerIndex = indexOf(brokerKeys)
	topicIndex  = indexOf(topicKeys)
)

func indexOf(keys []Key) map[string]*Key {
	out := make(map[string]*Key, len(keys))
	for i := range keys {
		out[keys[i].Name] = &keys[i]
	}
	return out
}

// synonyms are the broker keys that give a value when the first is unset, in order, with the factor that turns
// them into the first one's unit.
var synonyms = map[string][]synonym{
	"log.retention.ms":      {{"log.retention.ms", 1}, {"log.retention.minutes", 60_000}, {"log.retention.hours", 3_600_000}},
	"log.roll.ms":           {{"log.roll.ms", 1}, {"log.roll.hours", 3_600_000}},
	"log.roll.jitter.ms":    {{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", 3_600_000}},
	"log.flush.interval.ms": {{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}},
}

type synonym struct {
	key    string
	factor int64
}

func synonymsOf(key string) []synonym {
	if s, ok := synonyms[key]; ok {
		return s
	}
	return []synonym{{key, 1}}
}
