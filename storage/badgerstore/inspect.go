package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/proto"

	"orch.io/controlplane/storage"
)

// reachedFile holds a revision that the store had reached, beside the
// database. A database that ends before it has lost commits, which it would
// not say by itself when its log or its list of tables is cut off.
const reachedFile = "REVISION"

// noteReached writes the file. It is only a witness, so it may be older than
// the store, and a failure to write it is no failure of the store.
func (s *Store) noteReached(revision storage.Revision) {
	if revision == s.committer.reached {
		return
	}
	path := filepath.Join(s.dir, reachedFile)
	err := os.WriteFile(path+".new", []byte(strconv.FormatInt(int64(revision), 10)+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.logger.Warn("storage could not note its revision", "dir", s.dir, "err", err)
		return
	}
	s.committer.reached = revision
}

// checkReached compares what was loaded with the file.
func (s *Store) checkReached() error {
	path := filepath.Join(s.dir, reachedFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	revision, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		s.logger.Warn("storage ignores a note of its revision that it cannot read", "path", path)
		return nil
	}
	if storage.Revision(revision) > s.state.revision {
		return fmt.Errorf("the files are damaged: they end at revision %d, but the store had reached %d; to go on with what is left, remove %s",
			s.state.revision, revision, path)
	}
	return nil
}

// inspect reads the tables through, because the database reads them in
// goroutines whose panics nobody can catch, and takes a block that it cannot
// read for the end of the table. What else may be wrong it leaves to the
// database, which says so.
func inspect(o badger.Options) error {
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if err != nil {
		return nil
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, 0, o)
	if err != nil {
		return nil
	}
	for id := range manifest.Tables {
		path := filepath.Join(o.Dir, table.IDToFilename(id))
		err := inspectTable(path)
		if err != nil {
			// If somebody has the store open, the table may be on its way out.
			time.Sleep(50 * time.Millisecond)
			err = inspectTable(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("table %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

var errCutOff = errors.New("it is cut off")

// maxBlock is far beyond what the database makes of the largest inline value.
const maxBlock = 64 << 20

// inspectTable checks the index at the end of a table and the blocks that the
// index names.
func inspectTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data, err := tableIndex(f, info.Size())
	if err != nil {
		return err
	}
	index, block := fb.GetRootAsTableIndex(data, 0), &fb.BlockOffset{}
	var packed, plain []byte
	for i := range index.OffsetsLength() {
		if !index.Offsets(block, i) || int64(block.Offset())+int64(block.Len()) > info.Size() {
			return errCutOff
		}
		packed = slices.Grow(packed[:0], int(block.Len()))[:block.Len()]
		if _, err := f.ReadAt(packed, int64(block.Offset())); err != nil {
			return err
		}
		if n, err := s2.DecodedLen(packed); err != nil || n > maxBlock {
			return fmt.Errorf("block %d cannot be read", i)
		}
		if plain, err = s2.Decode(plain[:cap(plain)], packed); err != nil {
			return fmt.Errorf("block %d cannot be read: %w", i, err)
		}
		if err := inspectBlock(plain); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

// tableIndex returns the index at the end of a table, in front of its length,
// its checksum and the length of that.
func tableIndex(f io.ReaderAt, end int64) ([]byte, error) {
	sized := func() ([]byte, error) {
		size := make([]byte, 4)
		if end < 4 {
			return nil, errCutOff
		}
		if _, err := f.ReadAt(size, end-4); err != nil {
			return nil, err
		}
		end -= 4 + int64(binary.BigEndian.Uint32(size))
		if end < 0 {
			return nil, errCutOff
		}
		b := make([]byte, binary.BigEndian.Uint32(size))
		_, err := f.ReadAt(b, end)
		return b, err
	}
	sum, err := sized()
	if err != nil {
		return nil, err
	}
	index, err := sized()
	if err != nil {
		return nil, err
	}
	if len(index) == 0 {
		return nil, errors.New("it has no index")
	}
	return index, verify(index, sum)
}

// inspectBlock checks a block: data, its checksum and the length of that.
func inspectBlock(b []byte) error {
	if len(b) < 4 {
		return errCutOff
	}
	body, size := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if int64(size) > int64(len(body)) {
		return errCutOff
	}
	end := len(body) - int(size)
	return verify(body[:end], body[end:])
}

func verify(data, sum []byte) error {
	want := &pb.Checksum{}
	if err := proto.Unmarshal(sum, want); err != nil {
		return errors.New("its checksum cannot be read")
	}
	if _, known := pb.Checksum_Algorithm_name[int32(want.Algo)]; !known {
		return fmt.Errorf("its checksum is of an unknown kind %d", want.Algo)
	}
	return y.VerifyChecksum(data, want)
}
