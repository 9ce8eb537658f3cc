package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the forms of a point in time, those of Kafka's tools among them. Without a zone it is UTC.
var timeLayouts = []string{
	"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z07",
	"2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04",
}

// ParseTime reads a point in time: 2024-05-01T10:00:00.000 as Kafka's tools take it (UTC), with a zone such as Z or
// +02:00, shorter down to the day, or milliseconds since 1970 (at least ten digits; fewer are a typing error).
func ParseTime(s string) (time.Time, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) >= 10 {
		return time.UnixMilli(n).UTC(), nil
	}
	for _, l := range timeLayouts {
		if t, err := time.Parse(l, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2024-05-01T10:00:00.000, 2024-05-01T10:00:00+02:00, 2024-05-01 or milliseconds since 1970", s)
}

var isoDuration = regexp.MustCompile(`^(?i)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?$`)

// ParseDuration reads a duration above zero: ISO 8601 as Kafka's tools take it (P1DT2H30M, PT15S), Go's form (36h,
// 15m30s), or days (7d).
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration above zero such as PT1H30M, P2D, 90m or 7d", s)
	d, err := time.ParseDuration(s)
	if err != nil {
		if n, ok := strings.CutSuffix(s, "d"); ok {
			days, derr := strconv.ParseInt(n, 10, 32)
			d, err = time.Duration(days)*24*time.Hour, derr
		}
	}
	if m := isoDuration.FindStringSubmatch(s); err != nil && m != nil && !strings.HasSuffix(strings.ToUpper(s), "T") {
		d, err = 0, nil
		for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if m[i+1] == "" {
				continue
			}
			n, perr := strconv.ParseFloat(m[i+1], 64)
			if perr != nil || n > float64(1<<62)/float64(unit) {
				return 0, bad
			}
			d += time.Duration(n * float64(unit))
		}
	}
	if err != nil || d <= 0 {
		return 0, bad
	}
	return d, nil
}
