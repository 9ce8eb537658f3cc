package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS is the only door to the disk. Implementations: OS (the real one) and Mem (in memory, can crash, can
// fail). Names are slash-separated paths; parents of a name must exist unless said otherwise. Errors wrap
// fs.ErrNotExist, fs.ErrExist, ErrNoSpace or ErrLocked where these apply. Safe for concurrent use.
type FS interface {
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing file for reading and writing; its contents stay.
	OpenReadWrite(name string) (File, error)
	// Create makes an empty file for reading and writing; a file of that name is cut to length 0.
	Create(name string) (File, error)
	// Mkdir makes one folder; fs.ErrExist when the name is taken.
	Mkdir(name string) error
	// MkdirAll makes a folder and its parents; it succeeds when the folder exists.
	MkdirAll(name string) error
	// List returns the entries of a folder sorted by name.
	List(name string) ([]Entry, error)
	// Stat describes a file or folder.
	Stat(name string) (Info, error)
	// Rename moves a file or folder, replacing a file of the new name. Durable after SyncDir of the
	// parents.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty folder. Open files stay usable until they are closed.
	Remove(name string) error
	// RemoveAll deletes a file or a folder with all it holds; a missing name is no error.
	RemoveAll(name string) error
	// SyncDir makes the entries of a folder durable: files created, renamed or removed in it.
	SyncDir(name string) error
	// SyncAll makes everything below a folder durable, contents and entries, and possibly the rest of the
	// volume: one call instead of many Syncs. errors.ErrUnsupported where the system has no such call.
	SyncAll(name string) error
	// Lock takes the exclusive lock that the named file stands for (made when missing) and holds it until
	// the returned Closer is closed or the process ends. ErrLocked when another holder has it. The lock
	// also excludes a JVM's FileChannel.tryLock on the same file.
	Lock(name string) (io.Closer, error)
	// Usage returns the size and the free bytes of the volume that holds name.
	Usage(name string) (Usage, error)
}

// File is an open file. ReadAt and WriteAt may be called concurrently with each other on disjoint ranges.
type File interface {
	io.ReaderAt
	// WriteAt writes all of p at off, growing the file; a short write returns an error and the number of
	// bytes written.
	io.WriterAt
	io.Closer
	// Size returns the current length in bytes.
	Size() (int64, error)
	// Truncate cuts or grows (with zero bytes) the file.
	Truncate(size int64) error
	// Sync makes the contents and the length durable (fdatasync where the system has it). It says nothing
	// about the folder entry; see FS.SyncDir.
	Sync() error
	// Preallocate reserves space for size bytes without changing the length, where the system can.
	Preallocate(size int64) error
}

// Raw is implemented by files that stand on an operating-system file, for sendfile and the like. The
// returned file is owned by the File and must not be closed.
type Raw interface {
	OSFile() *os.File
}

// Entry is one name in a folder.
type Entry struct {
	Name  string
	IsDir bool
}

// Info describes a file or folder.
type Info struct {
	Size    int64
	IsDir   bool
	ModTime int64 // Unix milliseconds
}

// Usage is the state of a volume in bytes.
type Usage struct {
	Total int64
	Free  int64 // available to this process
}

// Errors of this package, for errors.Is.
var (
	// ErrLocked says that another process or holder has the lock.
	ErrLocked = errors.New("locked by another process")
	// ErrNoSpace says that the volume is full.
	ErrNoSpace = errors.New("no space left on device")
	// ErrNotExist and ErrExist are those of io/fs.
	ErrNotExist = fs.ErrNotExist
	ErrExist    = fs.ErrExist
)
