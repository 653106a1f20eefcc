package apply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

const (
	opApply    = "Apply"
	opUpdate   = "Update"
	fieldsType = "FieldsV1"

	initialManager = "before-first-apply" // owns the fields of an object without owners at its first apply
	ancientManager = "ancient-changes"    // owns the fields of the Update entries beyond maxUpdaters

	maxUpdaters = 10   // Update entries of an object
	maxEntries  = 1000 // entries of a managedFields list
	maxDepth    = 500  // nesting of a field set or an applied object
	maxManager  = 128  // bytes of a manager's name
)

// entry is an element of metadata.managedFields.
type entry struct {
	manager, operation, apiVersion, subresource string

	time time.Time      // zero: none
	set  *fieldpath.Set // never changed in place: it may be cached
	text meta.RawJSON   // set as JSON; empty: not encoded yet
	tree map[string]any // the entry as it was read, nil once the entry has changed
}

// sameOwner reports whether two entries belong to the same owner. An applier has a single
// entry for all versions, an updater an entry for each version.
func (e *entry) sameOwner(o *entry) bool {
	return e.manager == o.manager && e.operation == o.operation && e.subresource == o.subresource &&
		(e.operation == opApply || e.apiVersion == o.apiVersion)
}

// setFields replaces the fields that e owns.
func (e *entry) setFields(set *fieldpath.Set) {
	e.set, e.text, e.tree = set, "", nil
}

func (e *entry) setTime(now time.Time) {
	e.time, e.tree = now, nil
}

// written sets the time of a write. Scaling leaves it unchanged, as clients expect.
func (e *entry) written(o Options) {
	if o.Subresource != "scale" {
		e.setTime(o.Now)
	}
}

// entries are the owners of an object, in any order.
type entries []*entry

func (es entries) find(o *entry) *entry {
	i := slices.IndexFunc(es, func(e *entry) bool { return e.sameOwner(o) })
	if i < 0 {
		return nil
	}
	return es[i]
}

// withoutEmpty removes the entries that own nothing.
func (es entries) withoutEmpty() entries {
	return slices.DeleteFunc(es, func(e *entry) bool { return e.set.Empty() })
}

// readEntries returns the entries of a managedFields list. set reads the field set of an
// entry. The first of several entries of the same owner counts.
func readEntries(list []any, set func(apiVersion string, raw meta.RawJSON) (fieldSet, error)) (entries, error) {
	if len(list) > maxEntries {
		return nil, fmt.Errorf("managedFields has more than %d entries", maxEntries)
	}
	es := make(entries, 0, len(list))
	for i, v := range list {
		tree, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("managedFields[%d] is not an object", i)
		}
		e, err := readEntry(tree, set)
		if err != nil {
			return nil, fmt.Errorf("managedFields[%d]: %w", i, err)
		}
		if es.find(e) == nil {
			es = append(es, e)
		}
	}
	return es, nil
}

func readEntry(tree map[string]any, set func(apiVersion string, raw meta.RawJSON) (fieldSet, error)) (*entry, error) {
	text := func(name string) string { s, _ := tree[name].(string); return s }
	e := &entry{
		manager: text("manager"), operation: text("operation"), apiVersion: strings.TrimPrefix(text("apiVersion"), "/"),
		subresource: text("subresource"), tree: tree,
	}
	switch {
	case e.operation != opApply && e.operation != opUpdate:
		return nil, errors.New("operation must be Apply or Update")
	case e.apiVersion == "":
		return nil, errors.New("apiVersion is missing")
	case strings.Count(e.apiVersion, "/") > 1:
		return nil, fmt.Errorf("apiVersion %q is not a group and version", e.apiVersion)
	case text("fieldsType") != fieldsType:
		return nil, errors.New("fieldsType must be FieldsV1")
	}
	if at := text("time"); at != "" {
		var err error
		if e.time, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, errors.New("time must have the format of RFC 3339")
		}
	}
	raw, err := rawFields(tree["fieldsV1"])
	if err != nil {
		return nil, err
	}
	read, err := set(e.apiVersion, raw)
	if err != nil {
		return nil, err
	}
	e.set, e.text = read.set, read.text
	if !e.canonical() {
		e.tree = nil
	}
	return e, nil
}

// canonical reports whether e.tree equals the result of encoding e again.
func (e *entry) canonical() bool {
	n := 0
	text := func(name, want string) bool {
		if want != "" {
			n++
		}
		return want == "" || e.tree[name] == want
	}
	at := ""
	if !e.time.IsZero() {
		at = meta.FormatTime(e.time)
	}
	return text("manager", e.manager) && text("operation", e.operation) && text("apiVersion", e.apiVersion) &&
		text("subresource", e.subresource) && text("fieldsType", fieldsType) && text("time", at) &&
		e.tree["fieldsV1"] == any(e.text) && len(e.tree) == n+1
}

// rawFields returns the JSON text of a fieldsV1 value.
func rawFields(v any) (meta.RawJSON, error) {
	switch v := v.(type) {
	case meta.RawJSON:
		return v, nil
	case nil:
		return "{}", nil
	case map[string]any:
		if tooDeep(v, maxDepth) {
			return "", fmt.Errorf("fieldsV1 is nested deeper than %d", maxDepth)
		}
		b, err := json.Marshal(v)
		return meta.RawJSON(b), err
	}
	return "", errors.New("fieldsV1 is not an object")
}

// parseSet parses a field set. It checks the text first, because structured-merge-diff
// accepts text after the value.
func parseSet(raw meta.RawJSON) (*fieldpath.Set, error) {
	b := []byte(raw)
	if !codec.IsObject(b, maxDepth) {
		return nil, fmt.Errorf("fieldsV1 is not a JSON object or is nested deeper than %d", maxDepth)
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("fieldsV1: %w", err)
	}
	return set, nil
}

// writeEntries returns es as a managedFields list in the order that clients expect: Apply
// entries first, then by time and names. It returns nil for no entries.
func (m *FieldManager) writeEntries(es entries) ([]any, error) {
	if len(es) == 0 {
		return nil, nil
	}
	slices.SortFunc(es, compareEntries)
	list := make([]any, len(es))
	for i, e := range es {
		if e.tree == nil && e.text == "" {
			var err error
			if e.text, err = m.encodeSet(e.apiVersion, e.set); err != nil {
				return nil, err
			}
		}
		list[i] = e.encode()
	}
	return list, nil
}

func compareEntries(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(a.operation, b.operation),
		cmp.Compare(seconds(a.time), seconds(b.time)),
		cmp.Compare(a.manager, b.manager),
		cmp.Compare(a.apiVersion, b.apiVersion),
		cmp.Compare(a.subresource, b.subresource),
	)
}

// seconds returns a time as it is stored. The zero time comes first.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}

// encode returns e as an element of managedFields. The text of e must be set.
func (e *entry) encode() map[string]any {
	if e.tree != nil {
		return e.tree
	}
	tree := map[string]any{
		"operation": e.operation, "apiVersion": e.apiVersion,
		"fieldsType": fieldsType, "fieldsV1": e.text,
	}
	if e.manager != "" {
		tree["manager"] = e.manager
	}
	if e.subresource != "" {
		tree["subresource"] = e.subresource
	}
	if !e.time.IsZero() {
		tree["time"] = meta.FormatTime(e.time)
	}
	return tree
}

// ValidateManager returns the violations in the name of a field manager: it has at most 128
// bytes and only printable characters. field is the path that the violations report. Required
// means that an empty name is a violation, as it is for Apply requests.
func ValidateManager(name, field string, required bool) []meta.StatusCause {
	switch {
	case name == "" && required:
		return []meta.StatusCause{{Reason: meta.CauseRequired, Field: field, Message: "Required value: is required for apply patch"}}
	case len(name) > maxManager:
		return []meta.StatusCause{{Reason: meta.CauseTooLong, Field: field, Message: fmt.Sprintf("Too long: may not be more than %d bytes", maxManager)}}
	}
	var causes []meta.StatusCause
	for i, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			causes = append(causes, meta.StatusCause{Reason: meta.CauseInvalid, Field: field, Message: fmt.Sprintf("Invalid value: %q: invalid character %U (at position %d)", name, r, i)})
		}
	}
	return causes
}
