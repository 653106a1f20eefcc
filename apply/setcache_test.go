package apply

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// TestSetCacheKeepsNoObject: a field set that is looked up is a part of the text of a whole
// object, which must not be kept with it.
func TestSetCacheKeepsNoObject(t *testing.T) {
	c := &setCache{max: 1}
	object := `{"metadata":{"managedFields":[{"fieldsV1":{"f:data":{}}}]}}`
	part := meta.RawJSON(object[len(`{"metadata":{"managedFields":[{"fieldsV1":`) : len(object)-len(`}]}}`)])
	require.Equal(t, meta.RawJSON(`{"f:data":{}}`), part)
	c.put(newSetKey("v1", part), readSet{})
	c.put(newSetKey("v1", `{}`), readSet{})
	require.Contains(t, c.old, setKey{"v1", part})
	_, ok := c.get(setKey{"v1", part})
	require.True(t, ok)
	require.Contains(t, c.cur, setKey{"v1", part})
	for k := range c.cur {
		assert.NotSame(t, unsafe.StringData(string(part)), unsafe.StringData(string(k.text)))
	}
}
