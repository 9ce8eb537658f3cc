package factory_test

import "testing"

// TestRunnable: a fix that doctor prints runs as it is, also where the cluster was named by flags.
func TestRunnable(t *testing.T) {
	for _, tt := range []struct {
		args          []string
		command, want string
	}{
		{nil, "kctl controller move --yes", "kctl controller move --yes"},
		{[]string{"-o", "json"}, "kctl controller move --yes", "kctl controller move --yes"},
		{[]string{"-z", "zk1:2181/a b"}, "kctl zk get /x   # restart broker 3", "kctl -z 'zk1:2181/a b' zk get /x   # restart broker 3"},
		{[]string{"--brokers", "b:9092", "--context", "prod"}, "kctl reassign generate --out plan.json   # then kctl reassign execute plan.json",
			"kctl --context prod -b b:9092 reassign generate --out plan.json   # then kctl --context prod -b b:9092 reassign execute plan.json"},
		{[]string{"-X", "client.id=ops", "-X", "ssl.key.password=s", "-X", "sasl.jaas.config=x", "-X", "ssl.keystore.key=PEM", "-X", "ssl.keystore.certificate.chain=PEM", "-X", "kctl.zookeeper.auth=digest:u:p", "-X", "zookeeper.ssl.keystore.password=s"}, "kctl brokers list", "kctl -X client.id=ops brokers list"},
		{[]string{"--command-config", "c.properties"}, "restart broker 2", "restart broker 2"},
		{[]string{"--from-dir", "dir"}, "kctl controller move --yes", "kctl controller move --yes"},
	} {
		f, _ := newFactory(t, nil, "", tt.args...)
		if got := f.Runnable(tt.command); got != tt.want {
			t.Errorf("%v\n got %s\nwant %s", tt.args, got, tt.want)
		}
	}
}
