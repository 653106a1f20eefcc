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

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

const (
	opApply    = "Apply"
	opUpdate   = "Update"
	fieldsType = "FieldsV1"

	maxEntries = 1000 // of one managedFields list
	maxDepth   = 500  // of a field set
)

// entry is one element of metadata.managedFields: what one manager owns.
type entry struct {
	manager, operation, apiVersion, subresource string

	time time.Time      // zero: none
	set  *fieldpath.Set // never changed in place: it may be cached
	text meta.RawJSON   // set as JSON; "": not encoded yet
	tree map[string]any // the entry as it was read, while nothing of it changed
}

// same reports whether two entries belong to one owner. An applier has one
// entry for all versions, an updater one for each.
func (e *entry) same(o *entry) bool {
	return e.manager == o.manager && e.operation == o.operation && e.subresource == o.subresource &&
		(e.operation == opApply || e.apiVersion == o.apiVersion)
}

// own replaces the fields that e owns.
func (e *entry) own(set *fieldpath.Set) {
	e.set, e.text, e.tree = set, "", nil
}

func (e *entry) touch(now time.Time) {
	e.time, e.tree = now, nil
}

// wrote sets the time of a write, which clients do not expect of scaling.
func (e *entry) wrote(w Write) {
	if w.Subresource != "scale" {
		e.touch(w.Now)
	}
}

// entries are the owners of an object, in no order.
type entries []*entry

func (es entries) find(o *entry) *entry {
	i := slices.IndexFunc(es, func(e *entry) bool { return e.same(o) })
	if i < 0 {
		return nil
	}
	return es[i]
}

// withoutEmpty drops the owners of nothing.
func (es entries) withoutEmpty() entries {
	return slices.DeleteFunc(es, func(e *entry) bool { return e.set.Empty() })
}

// read returns the entries of a managedFields list. Every fault is an error;
// what of it a caller gets to see is up to who calls.
func (t *Tracker) read(list []any) (entries, error) {
	if len(list) > maxEntries {
		return nil, fmt.Errorf("more than %d entries", maxEntries)
	}
	es := make(entries, 0, len(list))
	for i, v := range list {
		tree, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("entry %d is no object", i)
		}
		e, err := t.readEntry(tree)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		if es.find(e) == nil {
			es = append(es, e)
		}
	}
	return es, nil
}

func (t *Tracker) readEntry(tree map[string]any) (*entry, error) {
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
		return nil, fmt.Errorf("apiVersion %q is no group and version", e.apiVersion)
	case text("fieldsType") != fieldsType:
		return nil, errors.New("fieldsType must be FieldsV1")
	}
	if at := text("time"); at != "" {
		var err error
		if e.time, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, errors.New("time is no RFC 3339 time")
		}
	}
	raw, err := rawFields(tree["fieldsV1"])
	if err != nil {
		return nil, err
	}
	read, err := t.readSet(e.apiVersion, raw)
	if err != nil {
		return nil, err
	}
	e.set, e.text = read.set, read.text
	if !e.written(tree) {
		e.tree = nil
	}
	return e, nil
}

// written reports whether tree is e as writeEntry writes it.
func (e *entry) written(tree map[string]any) bool {
	n := 0
	text := func(name, want string) bool {
		if want != "" {
			n++
		}
		return want == "" || tree[name] == want
	}
	at := ""
	if !e.time.IsZero() {
		at = meta.FormatTime(e.time)
	}
	return text("manager", e.manager) && text("operation", e.operation) && text("apiVersion", e.apiVersion) &&
		text("subresource", e.subresource) && text("fieldsType", fieldsType) && text("time", at) &&
		tree["fieldsV1"] == any(e.text) && len(tree) == n+1
}

// rawFields returns the text of a fieldsV1 value.
func rawFields(v any) (meta.RawJSON, error) {
	switch v := v.(type) {
	case meta.RawJSON:
		return v, nil
	case nil:
		return "{}", nil
	case map[string]any:
		if tooDeep(v, maxDepth) {
			return "", errors.New("fieldsV1 is nested too deep")
		}
		b, err := json.Marshal(v)
		return meta.RawJSON(b), err
	}
	return "", errors.New("fieldsV1 is no object")
}

// parseSet reads a field set. The reader of structured-merge-diff takes text
// after the value, so that is looked for first.
func parseSet(raw meta.RawJSON) (*fieldpath.Set, error) {
	b := []byte(raw)
	if !codec.IsObject(b, maxDepth) {
		return nil, errors.New("fieldsV1 is no JSON object, or nested too deep")
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("fieldsV1: %w", err)
	}
	return set, nil
}

// write returns es as a managedFields list in the order that clients know:
// appliers first, then by time and names. No entries: nil.
func (t *Tracker) write(es entries) ([]any, error) {
	if len(es) == 0 {
		return nil, nil
	}
	slices.SortFunc(es, compareEntries)
	list := make([]any, len(es))
	for i, e := range es {
		tree, err := t.writeEntry(e)
		if err != nil {
			return nil, err
		}
		list[i] = tree
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

// seconds is a time as it is stored; none comes first.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}

func (t *Tracker) writeEntry(e *entry) (map[string]any, error) {
	if e.tree != nil {
		return e.tree, nil
	}
	if e.text == "" {
		var err error
		if e.text, err = t.encodeSet(e.apiVersion, e.set); err != nil {
			return nil, err
		}
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
	return tree, nil
}
