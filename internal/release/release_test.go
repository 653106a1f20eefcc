package release

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"0.0", "1.9", "1.36", "2.0"} {
		r, err := Parse(text)
		assert.NoError(t, err)
		assert.Equal(t, text, r.String())
	}
	for _, text := range []string{"", "1", "1.", ".1", "v1.2", "1.2.3", "1.02", "01.2", "+1.2", "1.-2", "1.99999", " 1.2", "1.x"} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, "must have a form like 1.37", text)
	}
}

func TestOrder(t *testing.T) {
	r, _ := Parse("1.10")
	assert.Equal(t, "1.11 1.9", r.Next().String()+" "+r.Previous().String())
	assert.Equal(t, 10, r.Minor())
	assert.Negative(t, r.Previous().Compare(r))
	assert.Positive(t, Newest.Compare(Oldest))
	for named, reached := range map[string]bool{"": false, "1.9": true, "1.10": true, "1.11": false, "0.99": true, "2.0": false, "soon": false} {
		assert.Equal(t, reached, r.Reached(named), named)
	}
	for _, c := range []struct {
		introduced, removed string
		serves              bool
	}{{"", "", true}, {"1.10", "", true}, {"1.11", "", false}, {"", "1.10", false}, {"", "1.11", true}, {"1.9", "1.11", true}} {
		assert.Equal(t, c.serves, r.Serves(c.introduced, c.removed), c)
	}
}
