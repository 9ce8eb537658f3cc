package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// editDone says what becomes of a znode that was read.
type editDone uint8

const (
	keepStored   editDone = iota // it is as wanted
	writeStored                  // it is made or changed
	removeStored                 // it is deleted
)

// storedEdit changes one znode that brokers and other tools change as well. The change and the notification that
// brokers wait for are one multi, conditional on the version that was read.
type storedEdit struct {
	path string
	// edit computes the value that is wanted from the one there is, nil for none. It may be called several times, and says
	// keepStored of its own result: that is how a write whose answer was lost is known again.
	edit         func(data []byte) (after []byte, do editDone, err error)
	noticePrefix string
	notice       []byte
}

// editTries bounds how often a change that others overtook is computed anew.
const editTries = 20

// errOvertaken is what is left when others changed the node each time.
var errOvertaken = errors.New("others keep changing it")

func runEdit(ctx context.Context, zk zkutil.Client, e storedEdit) error {
	ops, lost, ready := zkutil.Any(zk), error(nil), false
	for range editTries {
		data, stat, err := ops.Get(ctx, e.path)
		there := err == nil
		if err != nil && !errors.Is(err, zkop.ErrNoNode) {
			return e.failed("read", err, lost)
		}
		after, do, err := e.edit(data)
		if err != nil || do == keepStored {
			return err
		}
		if !ready {
			if err := e.parents(ctx, ops); err != nil {
				return e.failed("make the parents of", err, lost)
			}
			ready = true
		}
		_, err = ops.Multi(ctx, e.request(after, do, there, stat.Version), zkop.Request{Kind: zkop.Create, Path: e.noticePrefix, Mode: zkop.PersistentSequential, Data: e.notice})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zkop.ErrOutcomeUnknown):
			lost = err
			if err := ops.Sync(ctx, e.path); err != nil { // so that what arrived after all shows
				return e.failed("read", err, lost)
			}
		case errors.Is(err, zkop.ErrNoNode):
			ready = false
		case !errors.Is(err, zkop.ErrBadVersion) && !errors.Is(err, zkop.ErrNodeExists):
			return e.failed("write", err, nil)
		}
	}
	return &Error{Kind: Failed, Msg: "write " + e.path, Err: errOvertaken, Hint: "look at it, and try again: kctl zk get " + e.path + " --stat"}
}

func (e *storedEdit) request(after []byte, do editDone, there bool, version int32) zkop.Request {
	switch {
	case do == removeStored:
		return zkop.Request{Kind: zkop.Delete, Path: e.path, Version: version}
	case there:
		return zkop.Request{Kind: zkop.Set, Path: e.path, Data: after, Version: version}
	}
	return zkop.Request{Kind: zkop.Create, Path: e.path, Data: after}
}

// parents makes the folders that brokers make when they start for the first time.
func (e *storedEdit) parents(ctx context.Context, ops zkutil.Ops) error {
	for _, p := range []string{e.path, e.noticePrefix} {
		if err := ops.EnsurePath(ctx, p[:strings.LastIndexByte(p, '/')]); err != nil {
			return err
		}
	}
	return nil
}

// failed says what went wrong, and of a write whose answer was lost that nobody knows.
func (e *storedEdit) failed(doing string, err, lost error) error {
	if lost != nil {
		return &Error{
			Kind: Unreachable, Msg: fmt.Sprintf("the answer to the write of %s was lost: whether it was made is not known", e.path), Err: lost,
			Hint: "look before you repeat it: kctl zk get " + e.path + " --stat",
		}
	}
	return wrap(err, "%s %s", doing, e.path)
}

// editConfig changes values of an entity of /config; those that are not named, and what is not known of the znode, stay.
// A nil value takes one away.
func editConfig(kind znode.ConfigType, entity string, values map[string]*string) storedEdit {
	prefix := znode.ConfigChangePrefix
	return storedEdit{
		path: znode.ConfigEntityPath(kind, entity), noticePrefix: prefix, notice: znode.ConfigChange{Type: kind, Entity: entity}.Encode(),
		edit: func(data []byte) ([]byte, editDone, error) {
			cfg, err := znode.DecodeConfig(kind, entity, data)
			if err != nil {
				return nil, keepStored, &Error{Kind: Failed, Msg: "nothing was written", Err: err}
			}
			do := keepStored
			for k, v := range values {
				have, ok := cfg.Values[k]
				switch {
				case v == nil && ok:
					delete(cfg.Values, k)
					do = writeStored
				case v != nil && (!ok || have != *v):
					cfg.Values[k] = *v
					do = writeStored
				}
			}
			return cfg.Encode(), do, nil
		},
	}
}

// editACLs adds or removes rules of a resource. A node without rules is deleted, as by Kafka.
func editACLs(r znode.ACLResource, rules []znode.ACLRule, add bool) storedEdit {
	e := storedEdit{path: r.Path()}
	e.noticePrefix, e.notice = r.Change()
	e.edit = func(data []byte) ([]byte, editDone, error) {
		acls, err := znode.DecodeACLs(e.path, data)
		if err != nil {
			return nil, keepStored, &Error{Kind: Failed, Msg: "nothing was written", Err: err}
		}
		before := acls.Encode()
		for _, rule := range rules {
			if add {
				acls.Add(rule)
			} else {
				acls.Remove(rule)
			}
		}
		after := acls.Encode()
		switch {
		case string(before) == string(after):
			return nil, keepStored, nil
		case len(acls.Rules()) == 0:
			return nil, removeStored, nil
		}
		return after, writeStored, nil
	}
	return e
}
