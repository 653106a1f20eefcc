package apply

import (
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
)

// setCache keeps field sets by their text: most objects of a kind have the same
// few, and the set of one object is read again on each write. It forgets the
// older half when it is full. What is in it is never changed.
type setCache struct {
	mu         sync.RWMutex // of the maps and the count; the sets need none
	cur, old   map[setKey]readSet
	bytes, max int // text in cur; the most it may hold
}

type setKey struct {
	apiVersion string
	text       meta.RawJSON
}

// readSet is a field set reconciled with the schema of its version, and its text.
type readSet struct {
	set  *fieldpath.Set
	text meta.RawJSON
}

// newSetKey returns a key to be kept: it is no part of the text of an object.
func newSetKey(apiVersion string, text meta.RawJSON) setKey {
	return setKey{strings.Clone(apiVersion), meta.RawJSON(strings.Clone(string(text)))}
}

// get returns the set of a key, which it does not keep.
func (c *setCache) get(k setKey) (readSet, bool) {
	c.mu.RLock()
	r, ok := c.cur[k]
	if ok {
		c.mu.RUnlock()
		return r, true
	}
	r, ok = c.old[k]
	c.mu.RUnlock()
	if ok {
		c.put(newSetKey(k.apiVersion, k.text), r)
	}
	return r, ok
}

// put keeps a set by a key of newSetKey.
func (c *setCache) put(k setKey, r readSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(k.text); c.cur == nil || c.bytes > c.max {
		c.cur, c.old, c.bytes = map[setKey]readSet{}, c.cur, len(k.text)
	}
	c.cur[k] = r
}

// readSet parses a field set and reconciles it with the schema that the kind has now: a
// list or map that became atomic is owned whole by who owned parts of it. A version
// that is not served any more has no schema for that.
func (t *Tracker) readSet(apiVersion string, raw meta.RawJSON) (readSet, error) {
	key := setKey{apiVersion, raw}
	if r, ok := t.sets.get(key); ok {
		return r, nil
	}
	key = newSetKey(apiVersion, raw)
	set, err := parseSet(key.text)
	if err != nil {
		return readSet{}, err
	}
	if v := t.versions[apiVersion]; v != nil {
		reconciled, err := typed.ReconcileFieldSetWithSchema(set, v.value(nil))
		if err != nil {
			return readSet{}, err
		}
		if reconciled != nil {
			set = reconciled
		}
	}
	text, err := set.ToJSON()
	if err != nil {
		return readSet{}, err
	}
	r := readSet{set, meta.RawJSON(text)}
	t.sets.put(key, r)
	return r, nil
}

// encodeSet returns the text of a set and remembers it for the next read.
func (t *Tracker) encodeSet(apiVersion string, set *fieldpath.Set) (meta.RawJSON, error) {
	b, err := set.ToJSON()
	if err != nil {
		return "", err
	}
	text := meta.RawJSON(b)
	t.sets.put(newSetKey(apiVersion, text), readSet{set, text})
	return text, nil
}
