package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// Limits bounds what one patch may cost. Zero fields take the defaults.
type Limits struct {
	Operations int // operations of a JSON patch; 0: 10,000
	Copied     int // bytes that its copy operations may make, roughly; 0: 3 MiB
	Depth      int // nesting of the result; 0: 500
}

func (l Limits) withDefaults() Limits {
	if l.Operations == 0 {
		l.Operations = 10_000
	}
	if l.Copied == 0 {
		l.Copied = 3 << 20
	}
	if l.Depth == 0 {
		l.Depth = 500
	}
	return l
}

// JSONPatch returns obj changed by a JSON patch (RFC 6902); obj itself stays as
// it is. It is as lenient as the field's servers: an index below zero counts from
// the end of a list, a missing value is null, a member that is missing can be
// replaced, and reads as null for test and copy; a path may lack its first slash. A test
// compares numbers by their exact values, however they are written.
//
// A patch that is no list of operations is a BadRequest (400), an operation that
// is unknown or does not fit the object is Invalid (422), and one beyond the
// limits is RequestEntityTooLarge (413). One whose test fails is ErrTest, too.
func JSONPatch(obj map[string]any, patch []byte, limits Limits) (map[string]any, error) {
	limits = limits.withDefaults()
	ops, err := decodeOperations(patch, limits)
	if err != nil {
		return nil, err
	}
	run := patchRun{root: meta.Clone(obj), budget: limits.Copied}
	if reachesInto(ops) {
		run.root = expand(run.root)
	}
	for i, op := range ops {
		err := run.do(op)
		if errors.Is(err, errTooMuch) {
			return nil, meta.TooLarge("the copy operations of the patch make more than %d bytes", limits.Copied)
		}
		if err != nil {
			status := invalidPatch("operation %d (%s %s): %v", i, op.Op, op.Path, err)
			if errors.Is(err, ErrTest) {
				return nil, &failedTest{status}
			}
			return nil, status
		}
	}
	if slices.ContainsFunc(ops, func(op operation) bool { return op.inexact }) {
		run.root = roundNumbers(run.root)
	}
	out, ok := run.root.(map[string]any)
	if !ok {
		return nil, invalidPatch("the patch leaves something that is no object")
	}
	if tooDeep(out, limits.Depth) {
		return nil, invalidPatch("the patch leaves an object nested deeper than %d", limits.Depth)
	}
	return out, nil
}

// invalidPatch says that a patch is one, but cannot be carried out.
func invalidPatch(format string, args ...any) *meta.Status {
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, format, args...)
	s.Details = &meta.Details{}
	return s
}

// operation is one step of a JSON patch.
type operation struct {
	Op         string
	Path, From string
	Value      any
	inexact    bool // Value has numbers that a tree cannot hold exactly, as json.Number
}

func decodeOperations(patch []byte, limits Limits) ([]operation, error) {
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &raw); err != nil {
		return nil, meta.BadRequest("the body is no JSON patch: %v", err)
	}
	if len(raw) > limits.Operations {
		return nil, meta.TooLarge("the patch has %d operations, the limit is %d", len(raw), limits.Operations)
	}
	ops := make([]operation, len(raw))
	for i, r := range raw {
		op, err := decodeOperation(r)
		if err != nil {
			return nil, err.at(i)
		}
		ops[i] = op
	}
	return ops, nil
}

// badOperation is why an operation cannot be read.
type badOperation struct {
	why       string
	malformed bool // no operation at all, rather than one that cannot be carried out
}

func (b *badOperation) at(i int) error {
	if b.malformed {
		return meta.BadRequest("the body is no JSON patch: operation %d: %s", i, b.why)
	}
	return invalidPatch("operation %d: %s", i, b.why)
}

func decodeOperation(raw map[string]json.RawMessage) (op operation, bad *badOperation) {
	needed := []string{"op", "path"}
	for field, to := range map[string]*string{"op": &op.Op, "path": &op.Path, "from": &op.From} {
		if v, ok := raw[field]; ok && json.Unmarshal(v, to) != nil {
			return op, &badOperation{field + " must be a string", true}
		}
	}
	if v, ok := raw["value"]; ok {
		var err error
		if op.Value, op.inexact, err = patchValue(v); err != nil {
			return op, &badOperation{err.Error(), false}
		}
	}
	switch op.Op {
	case "move", "copy":
		needed = append(needed, "from")
	case "add", "replace", "remove", "test":
	default:
		return op, &badOperation{fmt.Sprintf("%q is no operation", op.Op), false}
	}
	for _, field := range needed {
		if v, ok := raw[field]; !ok || string(v) == "null" {
			return op, &badOperation{field + " is missing", false}
		}
	}
	return op, nil
}

// patchValue reads the value of an operation.
func patchValue(text json.RawMessage) (v any, inexact bool, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false, err
	}
	return exactNumbers(v)
}

// ErrTest says that the test of a JSON patch failed.
var ErrTest = errors.New("the value is another")

// failedTest is ErrTest as a caller is told.
type failedTest struct{ status *meta.Status }

// Error implements error.
func (f *failedTest) Error() string { return f.status.Error() }

// Unwrap returns both.
func (f *failedTest) Unwrap() []error { return []error{f.status, ErrTest} }

var (
	errMissing = errors.New("there is nothing at the path")
	errTooMuch = errors.New("too much is copied")
)

// patchRun is a JSON patch under way.
type patchRun struct {
	root   any
	budget int // bytes that may still be copied
}

func (r *patchRun) do(op operation) error {
	switch op.Op {
	case "add":
		return r.add(op.Path, op.Value)
	case "remove":
		_, err := r.remove(op.Path)
		return err
	case "replace":
		return r.replace(op.Path, op.Value)
	case "move":
		return r.move(op.From, op.Path)
	case "copy":
		v, err := r.member(op.From)
		if err != nil {
			return err
		}
		if r.budget -= Size(v, r.budget); r.budget < 0 {
			return errTooMuch
		}
		return r.add(op.Path, meta.Clone(v))
	}
	return r.test(op.Path, op.Value)
}

func (r *patchRun) move(from, to string) error {
	v, err := r.remove(from)
	if err != nil {
		return err
	}
	return r.add(to, v)
}

// test compares; a missing member is null, in an object that is there.
func (r *patchRun) test(path string, want any) error {
	got, err := r.root, error(nil)
	if path != "" {
		got, err = r.member(path)
	}
	if err != nil {
		return err
	}
	if !sameValue(got, want) {
		return ErrTest
	}
	return nil
}

// member returns the value at a path, nil for a missing member of an object.
func (r *patchRun) member(path string) (v any, err error) {
	err = r.edit(path, func(holder any, last string) (any, error) {
		var err error
		if v, err = step(holder, last); err == errMissing && isObject(holder) {
			err = nil
		}
		return holder, err
	})
	return v, err
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// reachesInto reports whether a patch names something inside a field set.
func reachesInto(ops []operation) bool {
	for _, op := range ops {
		if strings.Contains(op.Path, "/fieldsV1/") || strings.Contains(op.From, "/fieldsV1/") {
			return true
		}
	}
	return false
}

// expand returns v with every RawJSON as a tree.
func expand(v any) any {
	switch v := v.(type) {
	case meta.RawJSON:
		return v.Value()
	case map[string]any:
		for k, e := range v {
			v[k] = expand(e)
		}
	case []any:
		for i, e := range v {
			v[i] = expand(e)
		}
	}
	return v
}

// pointer splits a JSON pointer (RFC 6901). What stands before its first slash
// does not count; without a slash there is nothing to point at.
func pointer(path string) []string {
	parts := strings.Split(path, "/")[1:]
	if strings.Contains(path, "~") {
		unescape := strings.NewReplacer("~1", "/", "~0", "~")
		for i := range parts {
			parts[i] = unescape.Replace(parts[i])
		}
	}
	return parts
}

// index returns the position that a path element means in a list of n.
func index(part string, n int) (int, error) {
	i, err := strconv.Atoi(part)
	if err != nil {
		return 0, fmt.Errorf("%q is no index", part)
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, errMissing
	}
	return i, nil
}

func step(v any, part string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if e, ok := v[part]; ok {
			return e, nil
		}
	case []any:
		i, err := index(part, len(v))
		if err != nil {
			return nil, err
		}
		return v[i], nil
	}
	return nil, errMissing
}

// edit calls f with the value that holds the last element of path, and that
// element; f returns what shall stand in the holder's place.
func (r *patchRun) edit(path string, f func(holder any, last string) (any, error)) error {
	parts := pointer(path)
	if len(parts) == 0 {
		return errors.New("the path leads to no part of the object")
	}
	var err error
	r.root, err = editAt(r.root, parts, f)
	return err
}

func editAt(v any, parts []string, f func(any, string) (any, error)) (any, error) {
	if len(parts) == 1 {
		return f(v, parts[0])
	}
	child, err := step(v, parts[0])
	if err != nil {
		return v, err
	}
	child, err = editAt(child, parts[1:], f)
	if err != nil {
		return v, err
	}
	switch v := v.(type) {
	case map[string]any:
		v[parts[0]] = child
	case []any:
		i, _ := index(parts[0], len(v))
		v[i] = child
	}
	return v, nil
}

func (r *patchRun) add(path string, value any) error {
	return r.edit(path, func(holder any, last string) (any, error) {
		switch h := holder.(type) {
		case map[string]any:
			h[last] = value
			return h, nil
		case []any:
			return insert(h, last, value)
		}
		return holder, errMissing
	})
}

func insert(list []any, at string, value any) (any, error) {
	if at == "-" {
		return append(list, value), nil
	}
	i, err := index(at, len(list)+1)
	if err != nil {
		return list, err
	}
	list = append(list, nil)
	copy(list[i+1:], list[i:])
	list[i] = value
	return list, nil
}

func (r *patchRun) replace(path string, value any) error {
	if path == "" {
		r.root = value
		return nil
	}
	return r.edit(path, func(holder any, last string) (any, error) {
		switch h := holder.(type) {
		case map[string]any:
			h[last] = value
		case []any:
			i, err := index(last, len(h))
			if err != nil {
				return holder, err
			}
			h[i] = value
		default:
			return holder, errMissing
		}
		return holder, nil
	})
}

func (r *patchRun) remove(path string) (removed any, err error) {
	err = r.edit(path, func(holder any, last string) (any, error) {
		var err error
		if removed, err = step(holder, last); err != nil {
			return holder, err
		}
		switch h := holder.(type) {
		case map[string]any:
			delete(h, last)
		case []any:
			i, _ := index(last, len(h))
			return append(h[:i], h[i+1:]...), nil
		}
		return holder, nil
	})
	return removed, err
}

// Size estimates the bytes of a JSON value and stops counting above limit.
func Size(v any, limit int) int {
	n := 8
	switch v := v.(type) {
	case string:
		n += len(v)
	case meta.RawJSON:
		n += len(v)
	case map[string]any:
		for k, e := range v {
			if n += len(k) + 8; n > limit {
				return n
			}
			n += Size(e, limit-n)
		}
	case []any:
		for _, e := range v {
			if n > limit {
				return n
			}
			n += Size(e, limit-n)
		}
	}
	return n
}

// tooDeep reports whether v nests deeper than limit.
func tooDeep(v any, limit int) bool {
	if limit < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if tooDeep(e, limit-1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if tooDeep(e, limit-1) {
				return true
			}
		}
	}
	return false
}
