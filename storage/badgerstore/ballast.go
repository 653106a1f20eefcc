package badgerstore

import (
	"errors"
	"os"
)

// ballast is room that other programs cannot take: the blocks of a file without a name, which are free
// again when the process ends. A system that cannot allocate blocks has empty ballast.
type ballast struct {
	file  *os.File
	bytes int64
}

// takeBallast allocates so many bytes of the disk of dir. It fails if dir takes no files.
func takeBallast(dir string, bytes int64) (*ballast, error) {
	f, err := os.CreateTemp(dir, "ballast")
	if err != nil {
		return nil, err
	}
	b := &ballast{file: f}
	err = os.Remove(f.Name())
	if err == nil && allocates {
		b.bytes = bytes
		err = allocate(f, bytes)
	}
	if err != nil {
		return nil, errors.Join(err, b.release())
	}
	return b, nil
}

// size returns the bytes that it holds. Nil ballast has none.
func (b *ballast) size() int64 {
	if b == nil {
		return 0
	}
	return b.bytes
}

// release gives the room back.
func (b *ballast) release() error {
	if b == nil {
		return nil
	}
	return b.file.Close()
}
