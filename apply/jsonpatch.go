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
	"orch.io/controlplane/internal/codec"
)

// Limits bounds the cost of a JSON patch. Zero fields mean the defaults.
type Limits struct {
	Operations int // operations; 0: 10,000
	CopyBytes  int // estimated bytes that copy operations add; 0: 3 MiB
	Depth      int // nesting of the result; 0: 500
}

const maxOperations = 10_000 // of a JSON patch

func (l Limits) withDefaults() Limits {
	if l.Operations == 0 {
		l.Operations = maxOperations
	}
	if l.CopyBytes == 0 {
		l.CopyBytes = 3 << 20
	}
	if l.Depth == 0 {
		l.Depth = maxDepth
	}
	return l
}

// JSONPatch returns obj changed by a JSON patch (RFC 6902). The arguments are not changed,
// and the result shares nothing with them.
//
// Like the API servers of the field, it accepts more than the RFC: a negative index counts
// from the end of the list, a missing value is null, replace may add a field, test and copy
// read a missing field as null, and a path may lack its first slash. A test compares
// numbers by their exact values: 1 equals 1.0 and 1e0.
//
// The error is a *meta.Status: BadRequest (400) if the patch is not a list of operations,
// Invalid (422) if an operation is unknown or cannot be applied to obj, and
// RequestEntityTooLarge (413) if the patch exceeds the limits. If a test operation fails,
// the error also is ErrTestFailed.
func JSONPatch(obj map[string]any, patch []byte, limits Limits) (map[string]any, error) {
	limits = limits.withDefaults()
	ops, err := decodeOperations(patch, limits)
	if err != nil {
		return nil, err
	}
	run := patchRun{root: meta.Clone(obj), budget: limits.CopyBytes}
	if entersFieldSets(ops) {
		run.root = expand(run.root)
	}
	for i, op := range ops {
		err := run.do(op)
		if errors.Is(err, errCopyLimit) {
			return nil, meta.TooLarge("the copy operations of the patch add more than %d bytes", limits.CopyBytes)
		}
		if err != nil {
			status := invalidPatch("operation %d (%s %s): %v", i, op.Op, op.Path, err)
			if errors.Is(err, ErrTestFailed) {
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
		return nil, invalidPatch("the result of the patch is not an object")
	}
	if tooDeep(out, limits.Depth) {
		return nil, invalidPatch("the result of the patch is nested deeper than %d", limits.Depth)
	}
	return out, nil
}

// invalidPatch returns the error for a well-formed patch that cannot be applied.
func invalidPatch(format string, args ...any) *meta.Status {
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, format, args...)
	s.Details = &meta.StatusDetails{}
	return s
}

// operation is an operation of a JSON patch.
type operation struct {
	Op         string
	Path, From string
	Value      any
	inexact    bool // Value contains json.Number: numbers that a tree cannot represent exactly
}

func decodeOperations(patch []byte, limits Limits) ([]operation, error) {
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &raw); err != nil {
		return nil, meta.BadRequest("the body is not a JSON patch: %v", err)
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

// badOperation is the reason why an operation cannot be decoded.
type badOperation struct {
	why       string
	malformed bool // not an operation, instead of an invalid operation
}

func (b *badOperation) at(i int) error {
	if b.malformed {
		return meta.BadRequest("the body is not a JSON patch: operation %d: %s", i, b.why)
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
		return op, &badOperation{fmt.Sprintf("unknown operation %q", op.Op), false}
	}
	for _, field := range needed {
		if v, ok := raw[field]; !ok || string(v) == "null" {
			return op, &badOperation{field + " is missing", false}
		}
	}
	return op, nil
}

// patchValue decodes the value of an operation.
func patchValue(text json.RawMessage) (v any, inexact bool, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false, err
	}
	return exactNumbers(v)
}

// ErrTestFailed reports that a test operation of a JSON patch failed.
var ErrTestFailed = errors.New("the value differs")

// failedTest is ErrTestFailed with the Status of the patch.
type failedTest struct{ status *meta.Status }

// Error returns the message of the Status.
func (f *failedTest) Error() string { return f.status.Error() }

// Unwrap returns the Status and ErrTestFailed.
func (f *failedTest) Unwrap() []error { return []error{f.status, ErrTestFailed} }

var (
	errMissing   = errors.New("the path does not exist")
	errCopyLimit = errors.New("too many bytes are copied")
)

// patchRun is the state of a JSON patch.
type patchRun struct {
	root   any
	budget int // bytes that copy operations may still add
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
		if r.budget -= codec.EstimateSize(v, r.budget); r.budget < 0 {
			return errCopyLimit
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

// test compares the value at a path. A missing field of an object is null.
func (r *patchRun) test(path string, want any) error {
	got, err := r.root, error(nil)
	if path != "" {
		got, err = r.member(path)
	}
	if err != nil {
		return err
	}
	if !equalExactly(got, want) {
		return ErrTestFailed
	}
	return nil
}

// member returns the value at a path, nil if it is a missing field of an object.
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

// entersFieldSets reports whether a path leads into a field set.
func entersFieldSets(ops []operation) bool {
	for _, op := range ops {
		if strings.Contains(op.Path, "/fieldsV1/") || strings.Contains(op.From, "/fieldsV1/") {
			return true
		}
	}
	return false
}

// expand decodes every RawJSON in v, in place.
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

// pointer splits a JSON pointer (RFC 6901). Text before the first slash is ignored; a
// pointer without a slash has no parts.
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

// index returns the position of a path element in a list of n items.
func index(part string, n int) (int, error) {
	i, err := strconv.Atoi(part)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index", part)
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

// edit calls f with the last element of path and the value that holds it. f returns the
// value that replaces the holder.
func (r *patchRun) edit(path string, f func(holder any, last string) (any, error)) error {
	parts := pointer(path)
	if len(parts) == 0 {
		return errors.New("the path does not lead to a part of the object")
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

// tooDeep reports whether v is nested deeper than limit.
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
