package znode

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// TestScramGolden: what Apache Kafka 3.9.1 stored of a known password, and the vector of RFC 7677, are computed to the byte.
func TestScramGolden(t *testing.T) {
	b64 := func(s string) []byte {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got, err := NewScramCredential("SCRAM-SHA-256", "pencil", b64("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
	if err != nil {
		t.Fatal(err)
	}
	const want = "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
	if got.Encode() != want {
		t.Errorf("RFC 7677: %s, want %s", got.Encode(), want)
	}
	path := ConfigEntityPath(UserConfig, SanitizeEntity("we ird*~/%ü<default>"))
	var stored Config
	for _, c := range readCaptured(t) {
		if c.path == path {
			if stored, err = DecodeConfig(UserConfig, strings.TrimPrefix(path, "/config/users/"), []byte(c.data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for mechanism, iterations := range map[string]int32{"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192} {
		c, err := DecodeScramCredential(stored.Values[mechanism])
		if err != nil || c.Iterations != iterations || c.Encode() != stored.Values[mechanism] {
			t.Errorf("%s: %v, %v", mechanism, c, err)
			continue
		}
		if again, err := NewScramCredential(mechanism, "golden-pw", c.Salt, c.Iterations); err != nil || again.Encode() != stored.Values[mechanism] {
			t.Errorf("%s: computed %s, Kafka stored %s, %v", mechanism, again.Encode(), stored.Values[mechanism], err)
		}
	}
	if _, err := NewScramCredential("SCRAM-SHA-1", "x", nil, 4096); err == nil {
		t.Error("SCRAM-SHA-1 was taken")
	}
}

// TestScramDamaged: what Kafka could not read is refused, and neither the error nor the value when printed shows a secret.
func TestScramDamaged(t *testing.T) {
	const good = "salt=c2FsdA==,stored_key=c2VjcmV0MQ==,server_key=c2VjcmV0Mg==,iterations=4096"
	c, err := DecodeScramCredential(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c, c)} {
		if strings.Contains(text, "secret1") || strings.Contains(text, "c2VjcmV0") || strings.Contains(text, "115") {
			t.Errorf("printed as %s", text)
		}
	}
	for _, bad := range []string{
		"", "x", good + ",", good + ",x=1", good + ",salt=c2FsdA==", strings.Replace(good, "4096", "0", 1), strings.Replace(good, "4096", "99999999999", 1),
		strings.Replace(good, "c2VjcmV0MQ==", "c2VjcmV0MQ", 1), strings.TrimSuffix(good, ",iterations=4096"), "iterations=4096",
	} {
		if _, err := DecodeScramCredential(bad); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{`{"stored_key=c2VjcmV0"`, `{"version":1,"config":"stored_key=c2VjcmV0"}`, `{"version":1,"config":{"a":["c2VjcmV0"]}}`} {
		if _, err := DecodeConfig(UserConfig, "u", []byte(bad)); err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestACLs: a change of one rule keeps the others, their order, and what this program does not know.
func TestACLs(t *testing.T) {
	const path = "/kafka-acl/Topic/t"
	in := `{"acls":[{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Read","note":"keep"},` +
		`{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Read"},{"principal":"User:b","permissionType":"Deny","host":"h","operation":"All"}],"version":1,"x":{"y":1}}`
	a, err := DecodeACLs(path, []byte(in))
	if err != nil || len(a.Rules()) != 2 {
		t.Fatalf("%v, %v", a.Rules(), err)
	}
	a.Add(ACLRule{"User:a", "Allow", "*", "Read"})
	a.Add(ACLRule{"User:c", "Allow", "*", "Write"})
	a.Remove(ACLRule{"User:b", "Deny", "h", "All"})
	a.Remove(ACLRule{"User:nobody", "Deny", "h", "All"})
	want := `{"acls":[{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Read","note":"keep"},` +
		`{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Read"},{"principal":"User:c","permissionType":"Allow","host":"*","operation":"Write"}],"version":1,"x":{"y":1}}`
	if got := string(a.Encode()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	old, err := DecodeACLs(path, []byte(`{"version":1,"acls":[{"principal":"User:CN=a\,b","permissionType":"Allow","host":"*","operation":"Read"}]}`))
	if err != nil || len(old.Rules()) != 1 || old.Rules()[0].Principal != `User:CN=a\,b` {
		t.Errorf("before KAFKA-6319: %v, %v", old.Rules(), err)
	}
	for _, bad := range []string{
		`{"version":2,"acls":[]}`, `{"version":1}`, `{"version":1,"acls":{}}`, `{"version":1,"acls":[1]}`, `{"version":1,"acls":[{"principal":"User:a"}]}`, `[]`, `{`,
	} {
		if got, err := DecodeACLs(path, []byte(bad)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", bad, got.Rules(), err)
		}
	}
}

func TestACLPaths(t *testing.T) {
	for path, want := range map[string]ACLResource{
		"/kafka-acl/Group/*": {"Group", "*", false}, "/kafka-acl-extended/prefixed/TransactionalId/a:b": {"TransactionalId", "a:b", true},
	} {
		if got, ok := ParseACLPath(path); !ok || got != want {
			t.Errorf("%s: %v %v", path, got, ok)
		}
	}
	for _, bad := range []string{"/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/", "/kafka-acl/Topic/a/b", "/kafka-acl-changes/acl_changes_0000000000", "/kafka-acl-extended/prefixed", "/x"} {
		if got, ok := ParseACLPath(bad); ok {
			t.Errorf("%s: %v", bad, got)
		}
	}
	for _, bad := range [][2]string{
		{ACLChangePrefix + "0000000000", "TOPIC"}, {ACLChangePrefix + "0000000000", "TOPICS:x"}, {ExtendedACLChangePrefix + "0000000000", "TOPIC:x"},
		{ExtendedACLChangePrefix + "0000000000", `{"version":1,"resourceType":"TOPIC","name":"x","patternType":"LITERAL"}`},
	} {
		if got, err := DecodeACLChange(bad[0], []byte(bad[1])); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}

func FuzzACLs(f *testing.F) {
	fuzzPath(f, "/kafka-acl/Topic/T", `{"version":1,"acls":[{"principal":"User:CN=a\,b","permissionType":"Allow","host":"*","operation":"Read","x":[1]}],"y":null}`)
}

func FuzzACLChange(f *testing.F) {
	fuzzPath(f, ACLChangePrefix+"0000000000", "TOPIC:a:b", ":", "user:")
}

func FuzzExtendedACLChange(f *testing.F) { fuzzPath(f, ExtendedACLChangePrefix+"0000000000") }

// FuzzScramCredential: what is read is written back and read as the same, and no error shows what was read.
func FuzzScramCredential(f *testing.F) {
	for _, s := range []string{"", "iterations=1,salt=,stored_key=,server_key=", "salt=c2FsdA==,stored_key=c2VjcmV0MQ==,server_key=c2VjcmV0Mg==,iterations=4096"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := DecodeScramCredential(s)
		if err != nil {
			return
		}
		again, err := DecodeScramCredential(c.Encode())
		if err != nil || again.Encode() != c.Encode() {
			t.Errorf("%q: %q, then %q, %v", s, c.Encode(), again.Encode(), err)
		}
	})
}
