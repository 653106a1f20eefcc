package apply

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestSetCacheKeepsNoObject checks that the cache copies a field set, because the argument is
// a part of the text of an object and would keep the whole text in memory.
func TestSetCacheKeepsNoObject(t *testing.T) {
	c := &fieldSetCache{max: 1}
	object := `{"metadata":{"managedFields":[{"fieldsV1":{"f:data":{}}}]}}`
	part := meta.RawJSON(object[len(`{"metadata":{"managedFields":[{"fieldsV1":`) : len(object)-len(`}]}}`)])
	require.Equal(t, meta.RawJSON(`{"f:data":{}}`), part)
	c.put(newFieldSetKey("v1", part), fieldSet{})
	c.put(newFieldSetKey("v1", `{}`), fieldSet{})
	require.Contains(t, c.old, fieldSetKey{"v1", part})
	_, ok := c.get(fieldSetKey{"v1", part})
	require.True(t, ok)
	require.Contains(t, c.cur, fieldSetKey{"v1", part})
	for k := range c.cur {
		assert.NotSame(t, unsafe.StringData(string(part)), unsafe.StringData(string(k.text)))
	}
}
