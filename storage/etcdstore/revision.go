package etcdstore

import (
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// A transaction of etcd has up to positions commits. The revision of a commit is the etcd revision of
// the transaction and the position of the commit in it, so that each commit has its own revision, in
// the order in which watches yield the commits.
const (
	positionBits = 5
	positions    = 1 << positionBits
	lastPosition = positions - 1
)

func revisionOf(etcd int64, position int) storage.Revision {
	return storage.Revision(etcd<<positionBits | int64(position))
}

func etcdOf(revision storage.Revision) int64 { return int64(revision) >> positionBits }

func positionOf(revision storage.Revision) int { return int(revision & lastPosition) }

// Each value in etcd begins with a mark, which encodes the position of its commit: one of the bytes
// 0x81, 0x83 and so on, which cannot begin a UTF-8 text. A value that another program wrote has no
// mark, and position 0 or lastPosition. There is an unused byte between two marks, because etcd
// compares only whole values: a comparison with the bytes on both sides of a mark tests the mark.
const (
	firstMark = 0x81
	lastMark  = firstMark + 2*lastPosition
)

func mark(position int) byte { return firstMark + 2*byte(position) }

func marked(position int, value []byte) string {
	var b strings.Builder
	b.Grow(1 + len(value))
	b.WriteByte(mark(position))
	b.Write(value)
	return b.String()
}

func unmarked(value []byte) (position int, rest []byte) {
	switch {
	case len(value) == 0 || value[0] < firstMark:
		return 0, value
	case value[0] > lastMark:
		return lastPosition, value
	}
	return int(value[0]-firstMark) / 2, value[1:]
}

// hasPosition returns comparisons that hold if the value of key, which must exist, has the position.
func hasPosition(key string, position int) (cmps []clientv3.Cmp) {
	if position > 0 {
		cmps = append(cmps, clientv3.Compare(clientv3.Value(key), ">", string([]byte{mark(position) - 1})))
	}
	if position < lastPosition {
		cmps = append(cmps, clientv3.Compare(clientv3.Value(key), "<", string([]byte{mark(position) + 1})))
	}
	return cmps
}
