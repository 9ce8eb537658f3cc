package reassign

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kctl/admin/plan/reassign"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
)

// A run's state is one JSON file in the state folder of kctl, named after cluster and plan. It is replaced in one
// step (a new file, synced, renamed), so that after kill -9 it is the one before or the one after a change. While a
// run is executed its lock file is held; the lock ends with the process.

// store is the folder of states of one cluster.
type store struct {
	dir, cluster string
}

func openStore(f *factory.Factory, cluster string) *store {
	if cluster == "" {
		cluster = "unknown"
	}
	return &store{dir: filepath.Join(filepath.Dir(f.JournalPath()), "reassign"), cluster: cluster}
}

// identity names a plan: what it wants, not how its file is written.
func identity(entries []reassign.Entry) string {
	sum := sha256.Sum256(reassign.Encode(entries))
	return hex.EncodeToString(sum[:8])
}

func (s *store) path(plan string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == os.PathSeparator {
			return '_'
		}
		return r
	}, s.cluster)
	return filepath.Join(s.dir, clean+"-"+plan+".json")
}

// load reads the state of a plan, nil when there is none.
func (s *store) load(plan string) (*reassign.Run, error) { return readRun(s.path(plan)) }

func readRun(path string) (*reassign.Run, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.Usagef("read the state of the run: %v", err)
	}
	run := &reassign.Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("state of the run %s: %v", path, err), Hint: "move the file away to start anew"}
	}
	if run.Version != 1 {
		return nil, exit.Usagef("state of the run %s: version %d is not known; it was written by a newer kctl", path, run.Version)
	}
	return run, nil
}

// save makes a state durable.
func (s *store) save(run *reassign.Run) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return err
	}
	return replaceFile(s.path(run.Plan), append(data, '\n'))
}

// replaceFile writes a file so that there is either the old or the new content.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, werr := tmp.Write(data)
	err = errors.Join(werr, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// all reads the states of the cluster, sorted by start; those that cannot be read are left out.
func (s *store) all() []*reassign.Run {
	files, err := filepath.Glob(s.path("*"))
	if err != nil {
		return nil
	}
	var out []*reassign.Run
	for _, path := range files {
		if run, err := readRun(path); err == nil && run != nil && run.Cluster == s.cluster {
			out = append(out, run)
		}
	}
	slices.SortFunc(out, func(a, b *reassign.Run) int { return a.Started.Compare(b.Started) })
	return out
}

// unfinished returns the runs that were interrupted or still have throttles set, but for the plan not.
func (s *store) unfinished(not string) []*reassign.Run {
	return slices.DeleteFunc(s.all(), func(r *reassign.Run) bool {
		return r.Plan == not || r.Outcome != reassign.Unfinished && len(r.Marks) == 0
	})
}

// lock takes the lock of a plan's run; it ends with unlock or with the process.
func (s *store) lock(plan string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(strings.TrimSuffix(s.path(plan), ".json")+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		return nil, &exit.Error{Code: exit.Failed, Msg: "another kctl executes this plan on this machine", Hint: "kctl reassign status --watch shows how far it is"}
	}
	return func() { _ = file.Close() }, nil // ends the lock; nothing was written
}
