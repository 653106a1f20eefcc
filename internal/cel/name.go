package cel

import (
	"regexp"
	"slices"
	"strings"
)

// reserved are the CEL keywords, which cannot be field names.
var reserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
}

var (
	nameForm = regexp.MustCompile(`^[a-zA-Z_./-][a-zA-Z0-9_./-]*$`)
	escapes  = strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__")
	escaped  = strings.NewReplacer("__underscores__", "__", "__dot__", ".", "__dash__", "-", "__slash__", "/")
)

// escape returns the CEL name of a field. ok is false if the field cannot have one.
func escape(name string) (_ string, ok bool) {
	switch {
	case slices.Contains(reserved, name):
		return "__" + name + "__", true
	case !nameForm.MatchString(name):
		return "", false
	}
	return escapes.Replace(name), true
}

// unescape returns the field for a CEL name.
func unescape(name string) string {
	if !strings.Contains(name, "__") {
		return name
	}
	if word := strings.TrimSuffix(strings.TrimPrefix(name, "__"), "__"); slices.Contains(reserved, word) && len(word)+4 == len(name) {
		return word
	}
	return escaped.Replace(name)
}
