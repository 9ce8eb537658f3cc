package admin

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
)

// TestPrintedRequest: what Apache Kafka says of a refusal is left out where it is the request as Java prints it.
func TestPrintedRequest(t *testing.T) {
	printed := "Request Request(processor=2, connectionId=127.0.0.1:9092-127.0.0.1:59324-27, session=org.apache.kafka.network.Session@2c7766fb, buffer=null, envelope=None) is not authorized."
	err := brokerErr(kmsg.DescribeACLs, kerr.ClusterAuthorizationFailed.Code, &printed)
	if want := "CLUSTER_AUTHORIZATION_FAILED"; !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "processor") || !strings.Contains(err.Error(), "Describe on the cluster") {
		t.Error(err)
	}
	if _, ok := Denied([]model.Problem{{Message: short(err)}}); !ok {
		t.Errorf("%s is not told from other errors", short(err))
	}
	said := "Topic authorization failed."
	if err := brokerErr(kmsg.DeleteTopics, kerr.TopicAuthorizationFailed.Code, &said); !strings.Contains(err.Error(), said) {
		t.Error(err)
	}
}

// TestRefusedTopics: positions from which an authorizer has kept something back make the answer a part of one, each topic once.
func TestRefusedTopics(t *testing.T) {
	refused := short(brokerErr(kmsg.Fetch, kerr.TopicAuthorizationFailed.Code, nil))
	got := refusedTopics([]model.ReplicaPosition{
		{Topic: "a", Broker: 1, Err: refused}, {Topic: "a", Broker: 2, Err: refused}, {Topic: "b", Broker: 1}, {Topic: "c", Broker: 1, Err: notRegistered},
	})
	if len(got) != 1 || got[0].Object != "topic a" || !strings.Contains(got[0].Message, "Read on the topic") {
		t.Errorf("%+v", got)
	}
}
