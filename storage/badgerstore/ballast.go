package badgerstore

import (
	"errors"
	"os"
)

// ballast is disk space that the store holds so that other programs cannot take it: the blocks of an
// unlinked file. The system frees them when the process ends. If the system cannot allocate blocks, the
// ballast is empty.
type ballast struct {
	file  *os.File
	bytes int64
}

// allocateBallast allocates bytes on the disk of dir. It fails if files cannot be created in dir.
func allocateBallast(dir string, bytes int64) (*ballast, error) {
	f, err := os.CreateTemp(dir, "ballast")
	if err != nil {
		return nil, err
	}
	b := &ballast{file: f}
	err = os.Remove(f.Name())
	if err == nil && canAllocate {
		b.bytes = bytes
		err = allocate(f, bytes)
	}
	if err != nil {
		return nil, errors.Join(err, b.release())
	}
	return b, nil
}

// size returns the number of bytes that b holds, 0 if b is nil.
func (b *ballast) size() int64 {
	if b == nil {
		return 0
	}
	return b.bytes
}

// release frees the space. b may be nil.
func (b *ballast) release() error {
	if b == nil {
		return nil
	}
	return b.file.Close()
}
