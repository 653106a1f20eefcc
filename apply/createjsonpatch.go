package apply

import (
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// CreateJSONPatch returns the JSON patch (RFC 6902) that changes original to modified:
// JSONPatch with it returns an object that equals modified. It names the fields and list
// positions that differ; lists are compared by position after their common head and tail.
// If that would take more than 10,000 operations or 1 MiB of paths, the patch replaces a
// larger part at once. The arguments are not changed.
func CreateJSONPatch(original, modified map[string]any) []byte {
	d := jsonDiff{budget: maxCompared}
	ops := d.values(nil, original, modified)
	list := make([]any, len(ops))
	for i, op := range ops {
		m := map[string]any{"op": op.op, "path": op.at.pointer()}
		if op.op != "remove" {
			m["value"] = op.value
		}
		list[i] = m
	}
	return codec.EncodeValue(nil, list)
}

const (
	maxCompared  = 64 << 20 // estimated bytes that aligning lists may compare
	maxPathBytes = 1 << 20  // of the paths of a patch
)

// jsonOp is an operation of a patch under construction.
type jsonOp struct {
	op    string
	at    *location
	value any
}

// location is a path that shares its head with others.
type location struct {
	above *location
	part  string
	bytes int // of the JSON pointer, about
}

func (l *location) below(part string) *location {
	n := len(part) + 1
	if l != nil {
		n += l.bytes
	}
	return &location{l, part, n}
}

// pointer returns the JSON pointer of l; nil is the root.
func (l *location) pointer() string {
	var parts []string
	for ; l != nil; l = l.above {
		parts = append(parts, strings.NewReplacer("~", "~0", "/", "~1").Replace(l.part), "/")
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// jsonDiff finds the operations between two values.
type jsonDiff struct {
	budget int // estimated bytes that aligning lists may still compare
}

// values returns the operations that change a to b at a location, none if they are equal.
func (d *jsonDiff) values(at *location, a, b any) []jsonOp {
	ops := opList{}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(&ops, at, a, b)
			return ops.orReplace(at, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.lists(&ops, at, a, b)
			return ops.orReplace(at, b)
		}
	default:
		if meta.Equal(a, b) {
			return nil
		}
	}
	return []jsonOp{{"replace", at, b}}
}

// opList is the operations below a value. It is full when a replacement of the value is better.
type opList struct {
	ops   []jsonOp
	bytes int // of the paths
}

func (l *opList) add(ops ...jsonOp) {
	for _, op := range ops {
		l.ops = append(l.ops, op)
		if op.at != nil {
			l.bytes += op.at.bytes
		}
	}
}

func (l *opList) full() bool { return len(l.ops) > maxOperations || l.bytes > maxPathBytes }

// orReplace returns the operations, or the replacement of the whole value if the list is
// full.
func (l *opList) orReplace(at *location, value any) []jsonOp {
	if l.full() {
		return []jsonOp{{"replace", at, value}}
	}
	return l.ops
}

func (d *jsonDiff) objects(ops *opList, at *location, a, b map[string]any) {
	for _, k := range sortedKeys(a) {
		if ops.full() {
			return
		}
		if v, stays := b[k]; stays {
			ops.add(d.values(at.below(k), a[k], v)...)
		} else {
			ops.add(jsonOp{op: "remove", at: at.below(k)})
		}
	}
	for _, k := range sortedKeys(b) {
		if _, had := a[k]; !had && !ops.full() {
			ops.add(jsonOp{"add", at.below(k), b[k]})
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// lists compares two lists by position after their common head and tail.
func (d *jsonDiff) lists(ops *opList, at *location, a, b []any) {
	head, tail := 0, 0
	if len(a) != len(b) {
		short := min(len(a), len(b))
		for head < short && d.equal(a[head], b[head]) {
			head++
		}
		for tail < short-head && d.equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
			tail++
		}
	}
	from, to := a[head:len(a)-tail], b[head:len(b)-tail]
	index := func(i int) *location { return at.below(strconv.Itoa(head + i)) }
	both := min(len(from), len(to))
	for i := 0; i < both && !ops.full(); i++ {
		ops.add(d.values(index(i), from[i], to[i])...)
	}
	for i := len(from) - 1; i >= both && !ops.full(); i-- {
		ops.add(jsonOp{op: "remove", at: index(i)})
	}
	for i := both; i < len(to) && !ops.full(); i++ {
		ops.add(jsonOp{"add", index(i), to[i]})
	}
}

// equal reports whether two list items are equal. It reports false when the budget is spent:
// nested lists compare their items once for each level.
func (d *jsonDiff) equal(a, b any) bool {
	if d.budget -= codec.EstimateSize(a, d.budget); d.budget < 0 {
		return false
	}
	return meta.Equal(a, b)
}
