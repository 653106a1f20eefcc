package openapi

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestDocumentsAreValidYAML: documents, and defaults in their protobuf form, are valid YAML, which excludes some
// characters that JSON allows and treats others as line breaks.
func TestDocumentsAreValidYAML(t *testing.T) {
	t.Parallel()
	const odd = "a\x7fb\u0085c\u009fd\u2028e\u2029f\ufeffg\ufffeh\uffffi"
	s := catalog(t, customKind("", `"odd":{"type":"string","description":"`+odd+`","default":"`+odd+`","enum":["`+odd+`","ä€😀"]}`))
	for name, d := range map[string]*Document{"v2": V2(s.Types(), info(s)), "v3": V3(things, s.Types()[0].Versions, info(s))} {
		text := string(d.JSON().Bytes())
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return needsEscape(r) || unicode.IsControl(r) && r != '\n' }), name)
		assert.Contains(t, text, "ä€😀")
		definitions := at(parse(t, d), "definitions")
		if name == "v3" {
			definitions = at(parse(t, d), "components", "schemas")
		}
		def := at(definitions, "com.example.v1.Thing", "properties", "spec", "properties", "odd")
		assert.Equal(t, odd, at(def, "default"))
		assert.Equal(t, odd, at(def, "description"))
		assert.Contains(t, string(d.Protobuf().Bytes()), `"a\u007fb\u0085c\u009fd\u2028e\u2029f\ufeffg\ufffeh\uffffi"`+"\n")
		assertFields(t, d.Protobuf().Bytes())
	}
}

// assertFields makes sure that a message can be read.
func assertFields(t *testing.T, message []byte) {
	t.Helper()
	for len(message) > 0 {
		_, _, n := protowire.ConsumeField(message)
		if !assert.Positive(t, n, "%v", protowire.ParseError(n)) {
			return
		}
		message = message[n:]
	}
}
