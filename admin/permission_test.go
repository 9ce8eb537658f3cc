package admin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestPermissionOfEachRequest: whatever this package sends, a refusal by an authorizer says what is missing.
func TestPermissionOfEachRequest(t *testing.T) {
	free := map[string]bool{"ApiVersions": true, "SASLHandshake": true} // which take no permission
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`kmsg\.NewPtr(\w+)Request\(`)
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range made.FindAllStringSubmatch(string(data), -1) {
			seen++
			if key, ok := keyNamed(m[1]); !ok || !free[m[1]] && permissions[key] == (permission{}) {
				t.Errorf("%s sends %s: it is not said what it takes", file, m[1])
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d requests were found", seen)
	}
}

func keyNamed(name string) (kmsg.Key, bool) {
	for i := range int16(kmsg.MaxKey + 1) {
		if kmsg.NameForKey(i) == name {
			return kmsg.Key(i), true
		}
	}
	return 0, false
}

// TestDeniedQuorum: in KRaft mode the first that is refused to a user without rights.
func TestDeniedQuorum(t *testing.T) {
	err := wrap(brokerErr(kmsg.DescribeQuorum, kerr.ClusterAuthorizationFailed.Code, nil), "ask the controllers")
	if KindOf(err) != Unauthorized || !strings.Contains(err.Error(), "Describe on the cluster") || !strings.Contains(HintOf(err), "--operation Describe --cluster") {
		t.Errorf("%v; %s", err, HintOf(err))
	}
}
