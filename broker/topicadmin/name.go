package topicadmin

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// nameBytesMax leaves room for the suffixes of a partition's folder within 255 bytes.
const nameBytesMax = 249

// ValidateName checks a topic name with Kafka's rules. INVALID_TOPIC_EXCEPTION.
func ValidateName(name string) error {
	switch {
	case name == "":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: '%s' is not allowed", name)
	case len(name) > nameBytesMax:
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, nameBytesMax)
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return refuse(kerr.InvalidTopicException, "Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

// collisionKey maps names that differ only in dots and underscores to one: they would share metric names.
func collisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

// checkCollision refuses a name that collides with an existing one.
func checkCollision(name string, existing []string) error {
	if !strings.ContainsAny(name, "._") {
		return nil
	}
	key := collisionKey(name)
	for _, other := range existing {
		if other != name && collisionKey(other) == key {
			return refuse(kerr.InvalidTopicException, "Topic '%s' collides with existing topics: %s", name, other)
		}
	}
	return nil
}
