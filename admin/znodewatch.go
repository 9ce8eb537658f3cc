package admin

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// The kinds of ZnodeEvent.
const (
	ZnodeCreated  = "created"
	ZnodeChanged  = "changed"  // its data
	ZnodeDeleted  = "deleted"  //
	ZnodeChildren = "children" // names came or went; with Recursive only those that came and went unseen
)

// ZnodeEvent is one change that WatchZnodes saw.
type ZnodeEvent struct {
	Event   string
	Path    string
	Znode   *Znode // as it is now; nil when it is gone
	Before  *Znode // nil when it was not there
	Added   []string
	Removed []string
	Skipped int32 // changes of the same kind between, which no reading saw
}

// ZnodeWatchOptions says what WatchZnodes looks at. The functions are called one after the other.
type ZnodeWatchOptions struct {
	Paths     []string // absolute; a node need not exist yet
	Recursive bool     // everything below, too
	// Armed is called once, when the first state has been read: what changes from then on is reported.
	Armed func(nodes int)
	// Gap is called when watches may have missed something: everything is read again then, and compared.
	Gap func(why string)
	// Changed is called for each change, in the order of ZooKeeper's transactions as far as it can be seen; its error
	// ends the watch.
	Changed func(ZnodeEvent) error
}

// WatchZnodes reports changes of znodes until ctx ends, which is no error. It sets ZooKeeper's watches, which tell once
// that something changed; the node is then read, and watched again by the same request. Changes that follow each other
// faster are seen as one, with their number. After a lost connection or an expired session everything is read again
// and compared with what was seen before.
func (c *Client) WatchZnodes(ctx context.Context, opts ZnodeWatchOptions) error {
	if err := c.nothingToWatch(); err != nil {
		return err
	}
	w := &znodeWatch{c: c, opts: opts, nodes: map[string]*Znode{}, told: map[string]int32{}}
	if err := w.follow(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// znodeWatch is what has been seen so far. It belongs to one goroutine.
type znodeWatch struct {
	c     *Client
	opts  ZnodeWatchOptions
	nodes map[string]*Znode
	told  map[string]int32 // by parent: children that were reported and its cversion does not yet count
	armed bool
}

func (w *znodeWatch) follow(ctx context.Context) error {
	zk, err := w.c.zookeeper(ctx)
	if err != nil {
		return err
	}
	feed, cancel := zk.Subscribe()
	defer cancel()
	d := znodeDirty{session: zk.Session(), paths: map[string]bool{}, all: true}
	for {
		switch err := w.read(ctx, &d); {
		case err == nil:
			d.all, d.paths = false, map[string]bool{}
		case !w.armed || !retriable(err):
			return err
		case !pause(ctx): // ZooKeeper did not answer: again in a while
			return nil
		default:
			d.all = true
			continue
		}
		if err := d.wait(ctx, feed); err != nil || ctx.Err() != nil {
			return err
		}
		for _, why := range d.gaps {
			w.opts.Gap(why)
		}
		d.gaps = nil
	}
}

// retriable reports whether a read may succeed on another connection or in another session.
func retriable(err error) bool {
	return errors.Is(err, zkop.ErrOutcomeUnknown) || errors.Is(err, zkop.ErrSessionExpired) || errors.Is(err, zkop.ErrSessionMoved) || KindOf(err) == Unreachable
}

// znodeDirty is what has to be read.
type znodeDirty struct {
	all     bool
	paths   map[string]bool
	session zkutil.Session
	gaps    []string
}

// wait takes notices: it returns when there is at least one, with all that have come.
func (d *znodeDirty) wait(ctx context.Context, feed <-chan zkutil.Notice) error {
	take := func(n zkutil.Notice, ok bool) error {
		if !ok {
			return &Error{Kind: Unreachable, Msg: "the ZooKeeper session was lost"}
		}
		d.note(n)
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case n, ok := <-feed:
		if err := take(n, ok); err != nil {
			return err
		}
	}
	for {
		select {
		case n, ok := <-feed:
			if err := take(n, ok); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// note sorts one notice. A new session has none of our watches; on an old one the server tells what it missed, and
// everything is read all the same: it costs little, and nothing depends on it.
func (d *znodeDirty) note(n zkutil.Notice) {
	if n.Watch != nil {
		d.paths[n.Watch.Path] = true
		return
	}
	was := d.session
	d.session = n.Session
	switch {
	case n.Session.State == zkutil.Suspended && was.State == zkutil.Connected:
		d.gaps = append(d.gaps, "the connection to ZooKeeper was lost")
	case n.Session.State != zkutil.Connected:
	case n.Session.Epoch != was.Epoch:
		d.all, d.gaps = true, append(d.gaps, "the session expired, a new one was made: everything is read again")
	case was.State != zkutil.Connected:
		d.all, d.gaps = true, append(d.gaps, "the connection to ZooKeeper is back: everything is read again")
	}
}

// read reads what is dirty, watches it again and reports what changed. Nothing is taken over when it fails.
func (w *znodeWatch) read(ctx context.Context, d *znodeDirty) error {
	ctx, cancel := w.c.within(ctx)
	defer cancel()
	level := slices.Collect(maps.Keys(d.paths))
	if d.all {
		level = append(slices.Collect(maps.Keys(w.nodes)), w.opts.Paths...)
	}
	now := map[string]*Znode{}
	again := 0
	for len(level) > 0 {
		next, err := w.readLevel(ctx, level, now)
		if err != nil {
			return err
		}
		if level = next; len(level) == 0 && again < tornReads {
			again++
			level = w.torn(now)
		}
	}
	return w.update(now)
}

// readLevel reads nodes, parents first, and returns those below them that have to be read next.
func (w *znodeWatch) readLevel(ctx context.Context, level []string, now map[string]*Znode) ([]string, error) {
	slices.Sort(level)
	level = slices.Compact(level)
	reqs := make([]zkop.Request, 0, 3*len(level))
	for _, p := range level {
		// Of a missing node only Exists leaves a watch. Nodes below are told of by their parents, and must not
		// leave one behind when they are gone.
		named := slices.Contains(w.opts.Paths, p)
		reqs = append(reqs, zkop.Request{Kind: zkop.Exists, Path: p, Watch: named}, zkop.Request{Kind: zkop.Get, Path: p, Watch: !named}, zkop.Request{Kind: zkop.Children, Path: p, Watch: true})
	}
	rs, err := w.c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var next []string
	for i, p := range level {
		z := znodeOf(p, rs[3*i:3*i+3])
		now[p] = z
		if z == nil || !w.opts.Recursive {
			continue
		}
		before := w.nodes[p]
		another := before == nil || before.Stat.Czxid != z.Stat.Czxid // whatever stands below it is another, too
		for _, ch := range z.Children {
			child := path.Join(p, ch)
			if (another || w.nodes[child] == nil) && now[child] == nil { // not read yet, or before it was there
				next = append(next, child)
			}
		}
	}
	return next, nil
}

// tornReads bounds how often a torn reading is mended: a server may hold numbers that never fit (ZOOKEEPER-3249).
const tornReads = 5

// torn returns what has to be read once more. Requests are answered one by one and others write between them: a node may be
// newer, or older, than the parent that was read. Then a later reading would report that the parent went and came back after
// what stands below the new one.
func (w *znodeWatch) torn(now map[string]*Znode) []string {
	if !w.opts.Recursive {
		return nil
	}
	var again []string
	for p, z := range now {
		if z == nil || slices.Contains(w.opts.Paths, p) {
			continue
		}
		dir := path.Dir(p)
		parent, read := now[dir]
		if !read {
			parent = w.nodes[dir]
		}
		if parent == nil || parent.Stat.Pzxid < z.Stat.Czxid || z.Stat.Czxid < parent.Stat.Czxid {
			again = append(again, dir, p)
		}
	}
	return again
}

// znodeOf puts the answers about one node together; nil when it is not there. It may have gone between two of them,
// of which its watch will tell.
func znodeOf(p string, rs []zkop.Response) *Znode {
	for _, r := range rs {
		if errors.Is(r.Err, zkop.ErrNoNode) {
			return nil
		}
	}
	z := &Znode{Path: p, Data: rs[1].Data, Stat: rs[1].Stat, Children: slices.Clone(rs[2].Children)}
	if rs[1].Err != nil { // it may not be read
		z.Stat = rs[0].Stat
	}
	if rs[2].Err == nil { // the newest, whose number of children is that of the list
		z.Stat.Cversion, z.Stat.Pzxid, z.Stat.NumChildren = rs[2].Stat.Cversion, rs[2].Stat.Pzxid, rs[2].Stat.NumChildren
	}
	slices.Sort(z.Children)
	return z
}

// update takes over what was read and reports it, except the first time.
func (w *znodeWatch) update(now map[string]*Znode) error {
	events := w.compare(now)
	for _, e := range events {
		if e.Event == ZnodeDeleted {
			delete(w.nodes, e.Path)
		}
	}
	for p, z := range now {
		if z != nil {
			w.nodes[p] = z
		}
	}
	if !w.armed {
		w.armed = true
		if w.opts.Armed != nil {
			w.opts.Armed(len(w.nodes))
		}
		return nil
	}
	for _, e := range events {
		if err := w.opts.Changed(e); err != nil {
			return err
		}
	}
	return nil
}

// compare makes the events between what was seen and what is read now, in their order.
func (w *znodeWatch) compare(now map[string]*Znode) []ZnodeEvent {
	if !w.armed {
		return nil
	}
	var out []ZnodeEvent
	for p, z := range now {
		out = append(out, nodeEvents(p, w.nodes[p], z)...)
	}
	// What stood below a node that is gone, or came back as another, is gone with it.
	for p, z := range w.nodes {
		if _, read := now[p]; !read && w.goneWith(p, now) {
			out = append(out, ZnodeEvent{Event: ZnodeDeleted, Path: p, Before: z})
		}
	}
	if w.opts.Recursive {
		for _, e := range out {
			if e.Event != ZnodeChanged {
				w.told[path.Dir(e.Path)]++
			}
		}
	}
	for p, z := range now {
		if before := w.nodes[p]; before != nil && z != nil && before.Stat.Czxid == z.Stat.Czxid {
			out = append(out, w.childEvents(before, z)...)
		} else {
			delete(w.told, p)
		}
	}
	return inOrder(out, now)
}

// inOrder sorts events by transaction; what stood below a node that went, went no later.
func inOrder(events []ZnodeEvent, now map[string]*Znode) []ZnodeEvent {
	type placed struct {
		e  ZnodeEvent
		at eventOrder
	}
	gone := map[string]int64{}
	all := make([]placed, len(events))
	for i, e := range events {
		all[i] = placed{e, orderOf(e, now)}
		if all[i].at.gone {
			gone[e.Path] = all[i].at.zxid
		}
	}
	for i := range all {
		for p := all[i].e.Path; all[i].at.gone && p != "/"; {
			p = path.Dir(p)
			if z, ok := gone[p]; ok {
				all[i].at.zxid = min(all[i].at.zxid, z)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.at.compare(b.at) })
	for i := range all {
		events[i] = all[i].e
	}
	return events
}

// goneWith reports whether a node above p was read and is not there, or no longer names it.
func (w *znodeWatch) goneWith(p string, now map[string]*Znode) bool {
	for p != "/" {
		dir, name := path.Dir(p), path.Base(p)
		if z, read := now[dir]; read && w.opts.Recursive {
			if _, had := w.nodes[dir]; had && (z == nil || !slices.Contains(z.Children, name)) {
				return true
			}
		}
		p = dir
	}
	return false
}

// nodeEvents are those of one node.
func nodeEvents(p string, before, after *Znode) []ZnodeEvent {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []ZnodeEvent{{Event: ZnodeCreated, Path: p, Znode: after, Skipped: after.Stat.Version}}
	case after == nil:
		return []ZnodeEvent{{Event: ZnodeDeleted, Path: p, Before: before}}
	case before.Stat.Czxid != after.Stat.Czxid:
		return []ZnodeEvent{{Event: ZnodeDeleted, Path: p, Before: before}, {Event: ZnodeCreated, Path: p, Znode: after, Skipped: after.Stat.Version}}
	case before.Stat.Mzxid != after.Stat.Mzxid:
		return []ZnodeEvent{{Event: ZnodeChanged, Path: p, Znode: after, Before: before, Skipped: max(0, after.Stat.Version-before.Stat.Version-1)}}
	}
	return nil
}

// childEvents tells of names that came or went. Each creation and each deletion of a child adds one to cversion, so that
// those that nobody saw can be counted.
func (w *znodeWatch) childEvents(before, after *Znode) []ZnodeEvent {
	delta := after.Stat.Cversion - before.Stat.Cversion
	if delta <= 0 {
		return nil
	}
	e := ZnodeEvent{Event: ZnodeChildren, Path: after.Path, Znode: after, Before: before}
	if w.opts.Recursive {
		seen := w.told[after.Path]
		w.told[after.Path] = max(0, seen-delta)
		if e.Skipped = delta - seen; e.Skipped <= 0 {
			return nil
		}
		return []ZnodeEvent{e}
	}
	e.Added, e.Removed = lacking(after.Children, before.Children), lacking(before.Children, after.Children)
	e.Skipped = max(0, delta-int32(len(e.Added)+len(e.Removed)))
	return []ZnodeEvent{e}
}

// lacking are the names of a that b has not; both are sorted.
func lacking(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { _, ok := slices.BinarySearch(b, s); return ok })
}

// eventOrder is the place of an event among others.
type eventOrder struct {
	zxid int64
	path string
	gone bool
}

func orderOf(e ZnodeEvent, now map[string]*Znode) eventOrder {
	o := eventOrder{path: e.Path, gone: e.Event == ZnodeDeleted}
	switch {
	case e.Event == ZnodeCreated:
		o.zxid = e.Znode.Stat.Czxid
	case e.Event == ZnodeChanged:
		o.zxid = e.Znode.Stat.Mzxid
	case e.Event == ZnodeChildren:
		o.zxid = e.Znode.Stat.Pzxid
	case now[e.Path] != nil: // there again
		o.zxid = now[e.Path].Stat.Czxid - 1
	default: // no later than the last change of what is above
		for p := e.Path; p != "/" && o.zxid == 0; {
			if p = path.Dir(p); now[p] != nil {
				o.zxid = now[p].Stat.Pzxid
			}
		}
	}
	return o
}

// compare: of events of one transaction, or of one that is not known better, those of what is gone come first, from below; then
// the others, from above.
func (a eventOrder) compare(b eventOrder) int {
	switch {
	case a.zxid != b.zxid:
		return int(min(1, max(-1, a.zxid-b.zxid)))
	case a.gone && b.gone:
		return strings.Compare(b.path, a.path)
	case a.gone:
		return -1
	case b.gone:
		return 1
	}
	return strings.Compare(a.path, b.path)
}
