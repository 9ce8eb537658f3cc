package config

import (
	"strings"
	"testing"
)

// FuzzListeners: whatever listeners are written, they load to something usable or to an error.
func FuzzListeners(f *testing.F) {
	f.Add("PLAINTEXT://127.0.0.1:9092", "", "")
	f.Add("A://:0,B://[::1]:9093", "A://host:1,B://other:2", "A:PLAINTEXT,B:PLAINTEXT")
	f.Add("A://h:1,A://h:1", "C://h:-1", "A:SSL")
	f.Add(",://,", "A://", ":")
	f.Fuzz(func(t *testing.T, listeners, advertised, protocols string) {
		kv := map[string]string{"zookeeper.connect": "zk:2181", "listeners": listeners}
		if advertised != "" {
			kv["advertised.listeners"] = advertised
		}
		if protocols != "" {
			kv["listener.security.protocol.map"] = protocols
		}
		b, _, err := Load(kv)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, l := range b.Listeners {
			if l.Name == "" || l.Protocol == "" || l.Port < 0 || l.Port > 65535 || names[l.Name] {
				t.Fatalf("listener %+v of %q", l, listeners)
			}
			names[l.Name] = true
		}
	})
}

// FuzzSet: an override is refused or has a key.
func FuzzSet(f *testing.F) {
	for _, s := range []string{"a=b", "=b", "a", "", "a=b=c", " a = b "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseSet(s); err == nil && p.Key == "" {
			t.Fatalf("%q gives %+v", s, p)
		}
	})
}

// FuzzValue: every value of every key is checked without a panic.
func FuzzValue(f *testing.F) {
	f.Add("7")
	f.Add("-9223372036854775809")
	f.Add("delete,compact")
	f.Add("true")
	f.Fuzz(func(t *testing.T, value string) {
		for _, keys := range [][]Key{BrokerKeys(), TopicKeys()} {
			for _, key := range keys {
				if err := key.Check(value); err != nil && !strings.Contains(err.Error(), key.Name) {
					t.Fatalf("error %q does not name %s", err, key.Name)
				}
			}
		}
	})
}
