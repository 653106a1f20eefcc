package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// indexes is a set of completion indexes as inclusive ranges, in ascending order and disjoint.
type indexes [][2]int32

// parseIndexes parses a text such as "0,3-5" with indexes less than below. The empty text is the empty
// set.
func parseIndexes(text string, below int32) (indexes, error) {
	var list indexes
	if text == "" {
		return list, nil
	}
	last := int32(-1)
	next := func(word string) (int32, error) {
		n, err := strconv.ParseUint(word, 10, 64)
		switch {
		case err != nil:
			return 0, fmt.Errorf("cannot convert string to integer for index: %q", word)
		case n >= uint64(max(below, 0)):
			return 0, fmt.Errorf("too large index: %q", word)
		case int64(n) <= int64(last):
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, n)
		}
		last = int32(n)
		return last, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if strings.Contains(to, "-") {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		first, err := next(from)
		if err != nil {
			return nil, err
		}
		end := first
		if isRange {
			if end, err = next(to); err != nil {
				return nil, err
			}
		}
		list = append(list, [2]int32{first, end})
	}
	return list, nil
}

// count returns the number of indexes.
func (list indexes) count() (n int32) {
	for _, r := range list {
		n += r[1] - r[0] + 1
	}
	return n
}

// overlap returns the lowest index that both sets contain, and whether there is any.
func (list indexes) overlap(other indexes) (int32, bool) {
	for len(list) > 0 && len(other) > 0 {
		a, b := list[0], other[0]
		switch {
		case a[1] < b[0]:
			list = list[1:]
		case b[1] < a[0]:
			other = other[1:]
		default:
			return max(a[0], b[0]), true
		}
	}
	return 0, false
}
