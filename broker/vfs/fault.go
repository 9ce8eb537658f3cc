package vfs

import (
	"path"
	"slices"
)

// Op names an operation for fault rules and hooks.
type Op string

// The operations.
const (
	OpOpen     Op = "open"
	OpCreate   Op = "create"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpSyncDir  Op = "syncdir"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpMkdir    Op = "mkdir"
	OpList     Op = "list"
	OpStat     Op = "stat"
	OpLock     Op = "lock"
)

// Rule makes operations of a Mem fail. Nothing is ever delayed.
type Rule struct {
	// Ops are the operations it applies to; none means all.
	Ops []Op
	// Pattern is matched (path.Match) against the whole path and against its last element; empty matches
	// everything.
	Pattern string
	// Err is returned by a matching operation.
	Err error
	// Skip is the number of matching operations that pass before the first fails; Times the number that
	// fail then, 0 meaning all further ones.
	Skip, Times int
	// ShortWrite is how many bytes a failing write still writes (a torn write).
	ShortWrite int

	seen int
}

func (r *Rule) matches(op Op, name string) bool {
	if len(r.Ops) > 0 && !slices.Contains(r.Ops, op) {
		return false
	}
	if r.Pattern == "" {
		return true
	}
	if ok, _ := path.Match(r.Pattern, name); ok {
		return true
	}
	ok, _ := path.Match(r.Pattern, path.Base(name))
	return ok
}

// apply counts a matching operation and reports whether it fails.
func (r *Rule) apply() bool {
	r.seen++
	return r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times)
}

// Inject adds a fault rule. The first failing rule wins.
func (m *Mem) Inject(r Rule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, &r)
}

// ClearFaults removes all rules and the size limit.
func (m *Mem) ClearFaults() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules, m.capacity = nil, 0
}

// SetCapacity limits the bytes that all files together may hold; a write over it writes what fits and returns
// ErrNoSpace. 0 means unlimited.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// SetHook installs a function that is called before every operation that changes something (write, truncate,
// sync, create, rename, remove, mkdir, syncdir), without a lock held: it may take a CrashClone. nil removes it.
func (m *Mem) SetHook(hook func(op Op, name string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// check runs the hook and the rules for one operation; it returns the failing rule, if any.
func (m *Mem) check(op Op, name string) *Rule {
	m.mu.Lock()
	hook := m.hook
	var failed *Rule
	for _, r := range m.rules {
		if r.matches(op, name) && r.apply() {
			failed = r
			break
		}
	}
	m.mu.Unlock()
	if hook != nil && op.changes() {
		hook(op, name)
	}
	return failed
}

func (op Op) changes() bool {
	switch op {
	case OpOpen, OpRead, OpList, OpStat, OpLock:
		return false
	}
	return true
}
