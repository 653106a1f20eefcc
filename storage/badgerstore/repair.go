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

// damagedSuffix is appended to the name of a damaged table that repairTable has replaced.
const damagedSuffix = ".damaged"

// onlyPieces reports whether the damaged blocks hold only pieces of large values. The keys of pieces sort
// after all others, so a block that begins with a piece holds only pieces. The heads of the values are in
// other blocks, so the affected records are known, and no other record is lost.
func onlyPieces(blocks []badBlock) bool {
	for _, b := range blocks {
		if !strings.HasPrefix(string(b.first), piecePrefix) {
			return false
		}
	}
	return len(blocks) > 0
}

// repairTable replaces a table by a table of its readable entries, because Badger would treat the first
// damaged block as the end of the table. The damaged table is kept with damagedSuffix.
func repairTable(path string, o badger.Options) error {
	b := table.NewTableBuilder(table.Options{
		TableSize: maxTable, BlockSize: o.BlockSize, BloomFalsePositive: o.BloomFalsePositive,
		ChkMode: o.ChecksumVerificationMode, Compression: o.Compression,
	})
	defer b.Close()
	_, err := readTable(path, func(e entry) error {
		b.Add(y.KeyWithTs(e.key, e.version), y.ValueStruct{Meta: e.bits, UserMeta: e.encoding, Value: e.stored}, 0)
		return nil
	})
	if err != nil {
		return err
	}
	if b.Empty() {
		return fmt.Errorf("table %s: no entry can be read", filepath.Base(path))
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Finish())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// Create the link before the rename, so that a table with this name exists at any time.
	if err := os.Link(path, path+damagedSuffix); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// maxTable is larger than any table of the database.
const maxTable = 256 << 20
