package znode

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// ScramCredential is a user's password of one SCRAM mechanism as Kafka stores it: a property of the user's Config, named
// like the mechanism. Whoever has StoredKey and ServerKey can try passwords, so neither is ever shown.
type ScramCredential struct {
	Salt, StoredKey, ServerKey []byte
	Iterations                 int32 // above zero
}

// scramHash is the hash function of a mechanism, nil for an unknown one.
func scramHash(mechanism string) func() hash.Hash {
	switch mechanism {
	case "SCRAM-SHA-256":
		return sha256.New
	case "SCRAM-SHA-512":
		return sha512.New
	}
	return nil
}

// NewScramCredential computes what a server stores of a password (RFC 5802, section 3). The mechanism is SCRAM-SHA-256
// or SCRAM-SHA-512. As in Kafka the password is taken as it is, without SASLprep.
func NewScramCredential(mechanism, password string, salt []byte, iterations int32) (ScramCredential, error) {
	h := scramHash(mechanism)
	if h == nil {
		return ScramCredential{}, fmt.Errorf("SCRAM mechanism %q is neither SCRAM-SHA-256 nor SCRAM-SHA-512", mechanism)
	}
	salted, err := pbkdf2.Key(h, password, salt, int(iterations), h().Size())
	if err != nil {
		return ScramCredential{}, err
	}
	sum := func(text string) []byte {
		mac := hmac.New(h, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := h()
	stored.Write(sum("Client Key"))
	return ScramCredential{Salt: salt, StoredKey: stored.Sum(nil), ServerKey: sum("Server Key"), Iterations: iterations}, nil
}

// DecodeScramCredential reads the property's value: the four members in any order, joined by commas. Errors name the
// member and show nothing of its value.
func DecodeScramCredential(value string) (ScramCredential, error) {
	var c ScramCredential
	seen := map[string]bool{}
	for part := range strings.SplitSeq(value, ",") {
		name, text, ok := strings.Cut(part, "=")
		var err error
		switch {
		case !ok:
			return ScramCredential{}, errors.New("a SCRAM credential has a member that is not name=value")
		case name == "salt":
			c.Salt, err = base64.StdEncoding.DecodeString(text)
		case name == "stored_key":
			c.StoredKey, err = base64.StdEncoding.DecodeString(text)
		case name == "server_key":
			c.ServerKey, err = base64.StdEncoding.DecodeString(text)
		case name == "iterations":
			var n int64
			n, err = strconv.ParseInt(text, 10, 32)
			if c.Iterations = int32(n); n < 1 {
				err = strconv.ErrRange
			}
		default:
			return ScramCredential{}, errors.New("a SCRAM credential has a member that Kafka does not know")
		}
		if err != nil || seen[name] {
			return ScramCredential{}, fmt.Errorf("the %s of a SCRAM credential is damaged or there twice", name)
		}
		seen[name] = true
	}
	if len(seen) != 4 {
		return ScramCredential{}, errors.New("a SCRAM credential lacks one of salt, stored_key, server_key and iterations")
	}
	return c, nil
}

// Encode writes the property's value.
func (c ScramCredential) Encode() string {
	b64 := base64.StdEncoding.EncodeToString
	return "salt=" + b64(c.Salt) + ",stored_key=" + b64(c.StoredKey) + ",server_key=" + b64(c.ServerKey) + ",iterations=" + strconv.Itoa(int(c.Iterations))
}

// String hides the secrets, so that no log and no error can show them.
func (c ScramCredential) String() string {
	return fmt.Sprintf("SCRAM credential of %d iterations", c.Iterations)
}

// GoString is String.
func (c ScramCredential) GoString() string { return c.String() }
