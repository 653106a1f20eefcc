package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAddDoesNotChangeSharedField: Add does not change a Field that another struct shares.
func TestAddDoesNotChangeSharedField(t *testing.T) {
	var one, other Struct
	one.Add(&Field{Name: "a", Schema: str()}, &Field{Name: "b", Schema: str()})
	other.Add(one.Fields...)
	other.Add(&Field{Name: "a", Schema: integer()})
	assert.Equal(t, String, one.Field("a").Schema.Type)
	assert.Equal(t, Integer, other.Field("a").Schema.Type)
	assert.Equal(t, []string{"a", "b"}, []string{other.Fields[0].Name, other.Fields[1].Name})
	assert.Same(t, other.Fields[0], other.Field("a"))
}
