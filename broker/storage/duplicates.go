package storage

import (
	"path/filepath"
	"strings"

	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// settleDuplicates puts one of two logs of a partition aside when they lie in different directories. That comes about
// when a directory fails, its replica is reassigned away and back, and is made anew in another directory, and the
// first directory is mended. Apache Kafka refuses to start then; here the later log stays, and the other is renamed
// <tp>.<uuid>-stray for an operator to look at.
func (m *Manager) settleDuplicates() {
	if len(m.dirs) < 2 {
		return
	}
	in := map[cluster.TopicPartition]*logDir{}
	for _, d := range m.dirs {
		if d.offline() != nil {
			continue
		}
		entries, err := m.fs.List(d.path)
		if err != nil {
			m.takeOffline(d, err)
			continue
		}
		for _, e := range entries {
			tp, ok := parseFolder(e.Name)
			if !ok || !e.IsDir {
				continue
			}
			if other := in[tp]; other == nil {
				in[tp] = d
			} else {
				in[tp] = m.putOlderAside(tp, other, d)
			}
		}
	}
}

// putOlderAside returns the directory of the log that stays.
func (m *Manager) putOlderAside(tp cluster.TopicPartition, a, b *logDir) *logDir {
	keep, aside := a, b
	if m.later(tp, b, a) {
		keep, aside = b, a
	}
	var random [16]byte
	m.opts.Random(random[:])
	path := filepath.Join(aside.path, strings.TrimSuffix(deleteFolderName(tp, random), dirDeleted)+dirStray)
	m.log.Warn("partition is in two log directories: the older log is put aside", obs.KeyTopicPartition, tp.String(),
		obs.KeyLogDir, keep.path, obs.KeyPath, path)
	err := m.fs.Rename(filepath.Join(aside.path, tp.String()), path)
	if err == nil {
		err = m.fs.SyncDir(aside.path)
	}
	if err != nil {
		m.takeOffline(aside, err)
	}
	return keep
}

// later reports whether the log in a is later than that in b: by leader epoch if both have one, else by when their
// partition.metadata was made. A replica that is made anew has a higher epoch as soon as it has records. A folder
// without partition.metadata is older than one with it, whatever it is.
func (m *Manager) later(tp cluster.TopicPartition, a, b *logDir) bool {
	epochA, madeA := m.ageOf(filepath.Join(a.path, tp.String()))
	epochB, madeB := m.ageOf(filepath.Join(b.path, tp.String()))
	if (madeA < 0) == (madeB < 0) && epochA != epochB && (madeA < 0 || epochA >= 0 && epochB >= 0) {
		return epochA > epochB
	}
	return madeA > madeB
}

// ageOf returns the latest leader epoch of a log as its checkpoint tells, -1 when it does not, and when its
// partition.metadata was made in ms, -1 when it has none.
func (m *Manager) ageOf(folder string) (epoch cluster.LeaderEpoch, made int64) {
	epoch = cluster.NoLeaderEpoch
	if data, err := readAll(m.fs, filepath.Join(folder, fileEpochs)); err == nil {
		if entries, err := parseEpochs(data); err == nil && len(entries) > 0 {
			epoch = entries[len(entries)-1].Epoch
		}
	}
	if info, err := m.fs.Stat(filepath.Join(folder, filePartition)); err == nil {
		return epoch, info.ModTime
	}
	return epoch, -1
}
