package storage

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
)

// Names of files and folders, as Apache Kafka has them.
const (
	extLog       = ".log"
	extIndex     = ".index"
	extTimeIndex = ".timeindex"
	extTxnIndex  = ".txnindex"
	extSnapshot  = ".snapshot"
	extDeleted   = ".deleted"
	extCleaned   = ".cleaned"
	extSwap      = ".swap"
	extTmp       = ".tmp"
	dirDeleted   = "-delete"
	dirFuture    = "-future"
	dirStray     = "-stray"

	fileEpochs       = "leader-epoch-checkpoint"
	filePartition    = "partition.metadata"
	fileHW           = "replication-offset-checkpoint"
	fileRecovery     = "recovery-point-offset-checkpoint"
	fileLogStart     = "log-start-offset-checkpoint"
	fileCleanerPoint = "cleaner-offset-checkpoint"
	fileMeta         = "meta.properties"
	fileClean        = ".kafka_cleanshutdown"
	fileLock         = ".lock"
)

const offsetDigits = 20

// offsetName returns the 20-digit file name of an offset, without extension.
func offsetName(offset int64) string {
	s := strconv.FormatInt(offset, 10)
	return "00000000000000000000"[:offsetDigits-len(s)] + s
}

// parseOffsetName reads the offset off a file name with the given extension.
func parseOffsetName(name, ext string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	if !ok || len(digits) != offsetDigits {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// parseFolder reads a partition off its folder's name.
func parseFolder(name string) (cluster.TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || i == len(name)-1 {
		return cluster.TopicPartition{}, false
	}
	p, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || p < 0 || strconv.FormatInt(p, 10) != name[i+1:] || !validTopic(name[:i]) {
		return cluster.TopicPartition{}, false
	}
	return cluster.TopicPartition{Topic: name[:i], Partition: int32(p)}, true
}

// validTopic keeps names that could leave the log directory or clash with other folders off the disk.
func validTopic(topic string) bool {
	if topic == "" || topic == "." || topic == ".." || len(topic) > 249 {
		return false
	}
	for _, c := range []byte(topic) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

var deletedFolder = regexp.MustCompile(`^(\S+)-(\S+)\.(\S+)` + dirDeleted + `$`)

// deleteFolderName is the name a partition's folder gets when it is deleted; random is 16 bytes. Long topic
// names are cut so that the name fits in 255 bytes.
func deleteFolderName(tp cluster.TopicPartition, random [16]byte) string {
	return deletedName(tp, hex.EncodeToString(random[:]))
}

func deletedName(tp cluster.TopicPartition, unique string) string {
	suffix := fmt.Sprintf("-%d.%s%s", tp.Partition, unique, dirDeleted)
	return tp.Topic[:min(len(tp.Topic), 255-len(suffix))] + suffix
}

func segmentPath(folder string, base int64, ext string) string {
	return filepath.Join(folder, offsetName(base)+ext)
}
