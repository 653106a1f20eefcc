package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
)

// spoiltSuffix ends the name of a table that was replaced by what can be read
// of it.
const spoiltSuffix = ".damaged"

// onlyPieces reports whether nothing but parts of large values is in blocks.
// Their keys come last, so a block that begins with one holds no others. Which
// records they belong to is known without them, so that only those are lost.
func onlyPieces(blocks []badBlock) bool {
	for _, b := range blocks {
		if !strings.HasPrefix(string(b.first), piecePrefix) {
			return false
		}
	}
	return len(blocks) > 0
}

// mendTable replaces a table by what can be read of it, because the database
// would take its first block that cannot be read for its end. The damaged one is
// kept beside it.
func mendTable(path string, o badger.Options) error {
	b := table.NewTableBuilder(table.Options{
		TableSize: maxTable, BlockSize: o.BlockSize, BloomFalsePositive: o.BloomFalsePositive,
		ChkMode: o.ChecksumVerificationMode, Compression: o.Compression,
	})
	defer b.Close()
	_, err := readTable(path, func(e entry) error {
		b.Add(y.KeyWithTs(e.key, e.version), y.ValueStruct{Meta: e.bits, UserMeta: e.form, Value: e.stored}, 0)
		return nil
	})
	if err != nil {
		return err
	}
	if b.Empty() {
		return fmt.Errorf("table %s: nothing in it can be read", filepath.Base(path))
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Finish())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// The link comes first, so that there is a table by that name at any moment.
	if err := os.Link(path, path+spoiltSuffix); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// maxTable is above every table that the database makes.
const maxTable = 256 << 20
