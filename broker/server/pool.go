package server

import "sync"

// The size classes of pooled buffers. Larger ones are left to the garbage collector, so that one giant request
// does not pin its memory for ever.
var classBytes = [...]int{1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22}

// buffers is process-wide on purpose: several brokers in one process (kbroker dev) share it. sync.Pool is not
// state in any sense that a caller could observe.
var buffers [len(classBytes)]sync.Pool

// Buffer is a byte slice from a pool of size classes. B may be re-sliced and grown by append; Release gives
// the memory back and must be called at most once, after the last use of any alias.
type Buffer struct{ B []byte }

// GetBuffer returns a Buffer of length 0 with room for at least n bytes.
func GetBuffer(n int) *Buffer {
	for i, size := range classBytes {
		if n <= size {
			if b, ok := buffers[i].Get().(*Buffer); ok {
				b.B = b.B[:0]
				return b
			}
			return &Buffer{B: make([]byte, 0, size)}
		}
	}
	return &Buffer{B: make([]byte, 0, n)}
}

// Release puts the memory back into the pool of the largest class that it fills.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	c := cap(b.B)
	if c > 2*classBytes[len(classBytes)-1] {
		return
	}
	for i := len(classBytes) - 1; i >= 0; i-- {
		if c >= classBytes[i] {
			buffers[i].Put(b)
			return
		}
	}
}

// grow makes room for n bytes in total and keeps the content; the old memory goes back to its pool.
func (b *Buffer) grow(n int) {
	if cap(b.B) >= n {
		return
	}
	bigger := GetBuffer(n)
	bigger.B = append(bigger.B, b.B...)
	b.B, bigger.B = bigger.B, b.B
	bigger.Release()
}
