package badgerstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// A log has the entries of a memtable: a header, the entries, and zeros up to the size with which the file was created.
const (
	logHeader    = 20
	maxLogKey    = 1 << 16
	maxLogValue  = 64 << 20
	logBuffer    = 256 << 10
	maxLogVarint = binary.MaxVarintLen64
)

// logEnd describes the end of the readable entries of a log.
type logEnd struct {
	entries int
	offset  int64
	size    int64
	clean   bool // nothing but zeros follows
	more    int  // number of bytes other than zero after offset
}

// readLog calls visit, if it is not nil, for the entries of a log up to the first incomplete or damaged entry, where
// Badger would truncate the log.
func readLog(path string, visit func(entry) error) (end logEnd, err error) {
	f, err := os.Open(path)
	if err != nil {
		return end, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return end, err
	}
	end.size = info.Size()
	if end.size <= logHeader {
		end.offset, end.clean = end.size, true
		return end, nil
	}
	end.offset = logHeader
	if _, err := f.Seek(logHeader, io.SeekStart); err != nil {
		return end, err
	}
	r := &logReader{in: bufio.NewReaderSize(f, logBuffer)}
	for {
		e, n, err := r.next()
		if errors.Is(err, errLogEnd) {
			break
		}
		if err != nil {
			return end, err
		}
		end.offset += n
		if e.key == nil {
			continue
		}
		end.entries++
		if visit != nil {
			if err := visit(e); err != nil {
				return end, err
			}
		}
	}
	end.more, err = countAfter(f, end.offset)
	end.clean = end.more == 0
	return end, err
}

// countAfter returns the number of bytes other than zero from offset on.
func countAfter(f *os.File, offset int64) (n int, err error) {
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	buf := make([]byte, logBuffer)
	for {
		read, err := f.Read(buf)
		n += read - bytes.Count(buf[:read], []byte{0})
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// errLogEnd is returned if no complete entry follows.
var errLogEnd = errors.New("end of the log")

type logReader struct {
	in  *bufio.Reader
	buf []byte
}

// next returns the next entry and its length in the log. The format is: bits, encoding, length of the key, length of
// the value, expiry, key, value, checksum. The end mark of a transaction is returned as an entry without key.
func (r *logReader) next() (entry, int64, error) {
	r.buf = r.buf[:0]
	bits, err1 := r.byte()
	encoding, err2 := r.byte()
	keyLen, err3 := r.varint()
	valueLen, err4 := r.varint()
	_, err5 := r.varint()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return entry{}, 0, logFault(err)
	}
	if keyLen < 8 || keyLen > maxLogKey || valueLen > maxLogValue {
		return entry{}, 0, errLogEnd
	}
	head, size := len(r.buf), int(keyLen+valueLen)
	for len(r.buf) < head+size+crc32.Size { // in steps, because a damaged length may be huge
		step := min(head+size+crc32.Size-len(r.buf), logBuffer)
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, step)...)
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			return entry{}, 0, logFault(err)
		}
	}
	body := r.buf[:head+size]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(r.buf[head+size:]) {
		return entry{}, 0, errLogEnd
	}
	if bits&bitEnd != 0 {
		return entry{}, int64(len(r.buf)), nil
	}
	e, ok := newEntry(body[head:head+int(keyLen)], bits, encoding, body[head+int(keyLen):])
	if !ok {
		return entry{}, 0, errLogEnd
	}
	return e, int64(len(r.buf)), nil
}

// logFault returns errLogEnd if err is the end of the file, and err otherwise.
func logFault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errLogEnd) {
		return errLogEnd
	}
	return err
}

func (r *logReader) byte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.buf = append(r.buf, b)
	}
	return b, err
}

func (r *logReader) varint() (uint64, error) {
	begin := len(r.buf)
	for range maxLogVarint {
		b, err := r.byte()
		if err != nil {
			return 0, err
		}
		if b < 0x80 {
			n, read := binary.Uvarint(r.buf[begin:])
			if read <= 0 {
				return 0, errLogEnd
			}
			return n, nil
		}
	}
	return 0, errLogEnd
}
