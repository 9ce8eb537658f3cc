package admin

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
)

// The bounds of SCRAM iterations that Apache Kafka holds.
const (
	ScramIterationsMin     int32 = 4096
	ScramIterationsMax     int32 = 16384
	ScramIterationsDefault int32 = 8192
)

// scramSalt is the length of a salt in bytes.
const scramSalt = 32

// scramMechanisms are Kafka's, with their numbers on the wire.
var scramMechanisms = []struct {
	name string
	id   int8
	hash func() hash.Hash
	size int
}{
	{"SCRAM-SHA-256", 1, sha256.New, sha256.Size},
	{"SCRAM-SHA-512", 2, sha512.New, sha512.Size},
}

// ScramMechanisms lists the names.
func ScramMechanisms() []string {
	var out []string
	for _, m := range scramMechanisms {
		out = append(out, m.name)
	}
	return out
}

func scramName(id int8) string {
	for _, m := range scramMechanisms {
		if m.id == id {
			return m.name
		}
	}
	return fmt.Sprintf("mechanism %d", id)
}

// ScramUsers reads the credentials of users, of all of them without names. A named user without credentials is an
// error of kind NotFound.
func (c *Client) ScramUsers(ctx context.Context, names []string) ([]model.ScramCredential, error) {
	if c.inTree() {
		return c.scramUsersInTree(ctx, names)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.DescribeUserSCRAMCredentials.Int16(), "SCRAM users"); err != nil {
		return nil, err
	}
	resp, err := c.askAny(ctx, func() kmsg.Request {
		req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		// All are meant by an empty list, never by null: Apache Kafka fails over a null when it refuses, and answers nothing.
		req.Users = make([]kmsg.DescribeUserSCRAMCredentialsRequestUser, 0, len(names))
		for _, n := range names {
			u := kmsg.NewDescribeUserSCRAMCredentialsRequestUser()
			u.Name = n
			req.Users = append(req.Users, u)
		}
		return req
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.DescribeUserSCRAMCredentialsResponse)
	if err := brokerErr(kmsg.DescribeUserSCRAMCredentials, r.ErrorCode, r.ErrorMessage); err != nil {
		return nil, wrap(err, "read SCRAM users")
	}
	var out []model.ScramCredential
	for _, u := range r.Results {
		err := brokerErr(kmsg.DescribeUserSCRAMCredentials, u.ErrorCode, u.ErrorMessage)
		switch {
		case errors.Is(err, kerr.ResourceNotFound):
			return nil, &Error{Kind: NotFound, Msg: fmt.Sprintf("user %s has no SCRAM credentials", u.User), Hint: "kctl users list shows who has"}
		case err != nil:
			return nil, wrap(err, "read user %s", u.User)
		}
		for _, i := range u.CredentialInfos {
			out = append(out, model.ScramCredential{User: u.User, Mechanism: scramName(i.Mechanism), Iterations: i.Iterations})
		}
	}
	slices.SortFunc(out, func(a, b model.ScramCredential) int {
		if d := strings.Compare(a.User, b.User); d != 0 {
			return d
		}
		return strings.Compare(a.Mechanism, b.Mechanism)
	})
	return out, nil
}

// SetScramUser gives a user a password in each of the mechanisms. Only a salted hash of it leaves this process. Each
// mechanism is a request of its own: KRaft controllers refuse a user who is named twice in one. So when a later one
// fails, the error names the mechanism, and those before it are set.
func (c *Client) SetScramUser(ctx context.Context, creds []model.ScramCredential, password string) error {
	if c.Stored() {
		return c.storeUsers(ctx, creds, password)
	}
	var reqs []*kmsg.AlterUserSCRAMCredentialsRequest
	for _, cred := range creds {
		up := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		salt := make([]byte, scramSalt)
		if _, err := rand.Read(salt); err != nil {
			return err
		}
		for _, m := range scramMechanisms {
			if m.name != cred.Mechanism {
				continue
			}
			salted, err := pbkdf2.Key(m.hash, password, salt, int(cred.Iterations), m.size)
			if err != nil {
				return err
			}
			up.Name, up.Mechanism, up.Iterations, up.Salt, up.SaltedPassword = cred.User, m.id, cred.Iterations, salt, salted
		}
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Upsertions = append(req.Upsertions, up)
		reqs = append(reqs, req)
	}
	return c.alterScram(ctx, reqs, creds, func(now []model.ScramCredential) bool {
		for _, cred := range creds {
			if !slices.Contains(now, cred) {
				return false
			}
		}
		return true
	})
}

// DeleteScramUser takes credentials away, each by a request of its own.
func (c *Client) DeleteScramUser(ctx context.Context, creds []model.ScramCredential) error {
	if c.Stored() {
		return c.unstoreUsers(ctx, creds)
	}
	var reqs []*kmsg.AlterUserSCRAMCredentialsRequest
	for _, cred := range creds {
		del := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		del.Name = cred.User
		for _, m := range scramMechanisms {
			if m.name == cred.Mechanism {
				del.Mechanism = m.id
			}
		}
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Deletions = append(req.Deletions, del)
		reqs = append(reqs, req)
	}
	return c.alterScram(ctx, reqs, creds, func(now []model.ScramCredential) bool {
		return !slices.ContainsFunc(creds, func(cred model.ScramCredential) bool {
			return slices.ContainsFunc(now, func(n model.ScramCredential) bool { return n.User == cred.User && n.Mechanism == cred.Mechanism })
		})
	})
}

// alterScram sends one request for each credential and reads until all of them show.
func (c *Client) alterScram(ctx context.Context, reqs []*kmsg.AlterUserSCRAMCredentialsRequest, creds []model.ScramCredential, shows func([]model.ScramCredential) bool) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.need(ctx, kmsg.AlterUserSCRAMCredentials.Int16(), "SCRAM users"); err != nil {
		return err
	}
	for i, req := range reqs {
		resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
			rs := r.(*kmsg.AlterUserSCRAMCredentialsResponse).Results
			return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
		})
		if err != nil {
			return wrap(err, "change %s of user %s", creds[i].Mechanism, creds[i].User)
		}
		for _, r := range resp.(*kmsg.AlterUserSCRAMCredentialsResponse).Results {
			if err := brokerErr(kmsg.AlterUserSCRAMCredentials, r.ErrorCode, r.ErrorMessage); err != nil {
				return wrap(err, "change %s of user %s", creds[i].Mechanism, r.User)
			}
		}
	}
	return c.await(ctx, "the credentials of "+creds[0].User, func(ctx context.Context) (bool, error) {
		now, err := c.ScramUsers(ctx, nil)
		return err == nil && shows(now), err
	})
}
