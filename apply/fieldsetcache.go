package apply

import (
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
)

// fieldSetCache caches parsed field sets by their text: most objects of a kind share a few
// sets, and every write of an object reads its sets again. When the cache is full, it drops
// its older half. Cached sets are never changed.
type fieldSetCache struct {
	mu         sync.RWMutex // guards cur, old and bytes
	cur, old   map[fieldSetKey]fieldSet
	bytes, max int // bytes of text in cur, and their limit
}

type fieldSetKey struct {
	apiVersion string
	text       meta.RawJSON
}

// fieldSet is a parsed field set with its canonical text.
type fieldSet struct {
	set  *fieldpath.Set
	text meta.RawJSON
}

// newFieldSetKey returns a key that the cache may keep: it does not share memory with the
// text of an object.
func newFieldSetKey(apiVersion string, text meta.RawJSON) fieldSetKey {
	return fieldSetKey{strings.Clone(apiVersion), meta.RawJSON(strings.Clone(string(text)))}
}

// get returns the set for a key. The cache does not keep k.
func (c *fieldSetCache) get(k fieldSetKey) (fieldSet, bool) {
	c.mu.RLock()
	s, ok := c.cur[k]
	if ok {
		c.mu.RUnlock()
		return s, true
	}
	s, ok = c.old[k]
	c.mu.RUnlock()
	if ok {
		c.put(newFieldSetKey(k.apiVersion, k.text), s)
	}
	return s, ok
}

// put adds a set under a key that newFieldSetKey made.
func (c *fieldSetCache) put(k fieldSetKey, s fieldSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(k.text); c.cur == nil || c.bytes > c.max {
		c.cur, c.old, c.bytes = map[fieldSetKey]fieldSet{}, c.cur, len(k.text)
	}
	c.cur[k] = s
}

// readSet parses a field set and reconciles it with the current schema of its version: the
// owner of a part of a list or map that became atomic owns the whole value. A set of an
// unknown version stays as it is.
func (m *FieldManager) readSet(apiVersion string, raw meta.RawJSON) (fieldSet, error) {
	key := fieldSetKey{apiVersion, raw}
	if s, ok := m.sets.get(key); ok {
		return s, nil
	}
	key = newFieldSetKey(apiVersion, raw)
	set, err := parseSet(key.text)
	if err != nil {
		return fieldSet{}, err
	}
	if v := m.versions[apiVersion]; v != nil {
		reconciled, err := typed.ReconcileFieldSetWithSchema(set, v.Value(nil))
		if err != nil {
			return fieldSet{}, err
		}
		if reconciled != nil {
			set = reconciled
		}
	}
	text, err := set.ToJSON()
	if err != nil {
		return fieldSet{}, err
	}
	s := fieldSet{set, meta.RawJSON(text)}
	m.sets.put(key, s)
	return s, nil
}

// encodeSet returns the text of a set and caches the set for the next read.
func (m *FieldManager) encodeSet(apiVersion string, set *fieldpath.Set) (meta.RawJSON, error) {
	b, err := set.ToJSON()
	if err != nil {
		return "", err
	}
	text := meta.RawJSON(b)
	m.sets.put(newFieldSetKey(apiVersion, text), fieldSet{set, text})
	return text, nil
}
