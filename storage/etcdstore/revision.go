package etcdstore

import (
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

// A transaction of etcd has up to places commits. The revision of one is that of etcd, and its place in the
// transaction, so that each has its own, in the order in which watches yield them.
const (
	placeBits = 5
	places    = 1 << placeBits
	lastPlace = places - 1
)

func revisionOf(etcd int64, place int) storage.Revision {
	return storage.Revision(etcd<<placeBits | int64(place))
}

func etcdOf(revision storage.Revision) int64 { return int64(revision) >> placeBits }

func placeOf(revision storage.Revision) int { return int(revision & lastPlace) }

// A value in etcd has a mark before it, the place of its commit: one of the bytes 0x81, 0x83 and so on, with
// which no UTF-8 text begins. What somebody else has put has none, and some place. Between two marks
// there is a byte for comparisons, since etcd compares whole values alone.
const (
	firstMark = 0x81
	lastMark  = firstMark + 2*lastPlace
)

func mark(place int) byte { return firstMark + 2*byte(place) }

func marked(place int, value []byte) string {
	var b strings.Builder
	b.Grow(1 + len(value))
	b.WriteByte(mark(place))
	b.Write(value)
	return b.String()
}

func unmarked(value []byte) (place int, rest []byte) {
	switch {
	case len(value) == 0 || value[0] < firstMark:
		return 0, value
	case value[0] > lastMark:
		return lastPlace, value
	}
	return int(value[0]-firstMark) / 2, value[1:]
}

// hasPlace holds if the value of a key, which is there, has a place.
func hasPlace(key string, place int) (is []clientv3.Cmp) {
	if place > 0 {
		is = append(is, clientv3.Compare(clientv3.Value(key), ">", string([]byte{mark(place) - 1})))
	}
	if place < lastPlace {
		is = append(is, clientv3.Compare(clientv3.Value(key), "<", string([]byte{mark(place) + 1})))
	}
	return is
}
