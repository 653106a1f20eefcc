package schema

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
)

// Rule is an expression that has to be true of a value, in the Common Expression
// Language: self is the value, oldSelf what it was.
type Rule struct {
	Expression string

	// Message is what is told if the expression is false; else MessageExpression makes it,
	// or the expression itself is told.
	Message, MessageExpression string

	Reason    string // of the cause; empty: FieldValueInvalid
	FieldPath string // of the field below the value that the cause names, such as .spec['a.b']

	// Created says that the rule holds for new values, too, though it speaks of oldSelf,
	// which is an optional value then. It is nil if nothing was said.
	Created *bool
}

// HasRules reports whether the value or something in it has rules.
func (s *Schema) HasRules() bool {
	return s != nil && s.expressions && s.hasRules(map[*Struct]bool{}) // types that hold themselves may look as if
}

func (s *Schema) hasRules(seen map[*Struct]bool) bool {
	if s == nil {
		return false
	}
	if len(s.Rules) > 0 || s.Items.hasRules(seen) || s.Values.hasRules(seen) || slices.ContainsFunc(s.AllOf, func(b *Schema) bool { return b.hasRules(seen) }) {
		return true
	}
	if s.Struct == nil || seen[s.Struct] {
		return false
	}
	seen[s.Struct] = true
	return slices.ContainsFunc(s.Struct.Fields, func(f *Field) bool { return f.Schema.hasRules(seen) })
}

// ruleReasons are those of causes that rules may have.
func ruleReasons() []string {
	return []string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"}
}

// rules reads the rules of a value.
func (d node) rules(s *Schema) {
	word := d.words.rules
	for i, v := range d.list(word) {
		at := d.path(word).Index(i)
		m, ok := v.(map[string]any)
		if !ok {
			d.faults.WrongType(at, v, "an object")
			continue
		}
		s.Rules = append(s.Rules, node{m, d.openAPIReader, place{path: at}}.rule(s))
	}
}

func (d node) rule(of *Schema) Rule {
	r := Rule{Expression: d.text("rule"), Message: d.text("message"), MessageExpression: d.text("messageExpression"), Reason: d.text("reason")}
	if _, ok := d.doc["optionalOldSelf"]; ok {
		created := d.flag("optionalOldSelf")
		r.Created = &created
	}
	message := strings.TrimSpace(r.Message)
	switch rule := strings.TrimSpace(r.Expression); {
	case rule == "":
		d.faults.Required(d.path("rule"), "rule is not specified")
	case r.Message != "" && message == "":
		d.faults.Invalid(d.path("message"), r.Message, "must be non-empty if specified")
	case strings.ContainsAny(message, "\r\n"):
		d.faults.Invalid(d.path("message"), r.Message, "must not contain line breaks")
	case strings.ContainsAny(rule, "\r\n") && message == "":
		d.faults.Required(d.path("message"), "message must be specified if rule contains line breaks")
	}
	if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
		d.faults.Required(d.path("messageExpression"), "messageExpression must be non-empty if specified")
	}
	if r.Reason != "" && !slices.Contains(ruleReasons(), r.Reason) {
		d.faults.NotSupported(d.path("reason"), r.Reason, ruleReasons()...)
	}
	if path := d.text("fieldPath"); path != "" {
		r.FieldPath = path
		if strings.TrimSpace(path) == "" {
			d.faults.Invalid(d.path("fieldPath"), path, "must be non-empty if specified")
		}
		if strings.ContainsAny(path, "\r\n") {
			d.faults.Invalid(d.path("fieldPath"), path, "must not contain line breaks")
		}
		if of.Below(nil, path) == nil {
			d.faults.Invalid(d.path("fieldPath"), path, "must be a valid path")
		}
	}
	return r
}

// Below returns the place of a value below another, by a path such as .spec['a.b']; nil if
// there can be none.
func (s *Schema) Below(at *check.Path, path string) *check.Path {
	names, ok := fieldPath(path)
	if !ok {
		return nil
	}
	for _, name := range names {
		switch f := s.Struct.Field(name); {
		case f != nil:
			at, s = at.Field(name), f.Schema
		case s.Struct == nil && s.Values != nil:
			at, s = at.Key(name), s.Values
		default:
			return nil
		}
	}
	return at
}

// fieldPath returns the names of a path such as .spec['a.b'].
func fieldPath(text string) (names []string, ok bool) {
	for text != "" {
		switch {
		case strings.HasPrefix(text, "['"):
			name, rest, ok := quoted(text[2:])
			if !ok || !strings.HasPrefix(rest, "]") {
				return nil, false
			}
			names, text = append(names, name), rest[1:]
		case text[0] == '.':
			end := strings.IndexAny(text[1:], ".[]")
			if end < 0 {
				end = len(text) - 1
			}
			if end == 0 {
				return nil, false
			}
			names, text = append(names, text[1:end+1]), text[end+1:]
		default:
			return nil, false
		}
	}
	return names, len(names) > 0
}

// quoted reads a text up to its quote, where a backslash keeps its meaning from the
// character behind it.
func quoted(text string) (name, rest string, ok bool) {
	const escapes, meant = `abfnrtv'\`, "\a\b\f\n\r\t\v'\\"
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\'':
			return b.String(), text[i+1:], true
		case '\\':
			i++
			at := -1
			if i < len(text) {
				at = strings.IndexByte(escapes, text[i])
			}
			if at < 0 {
				return "", "", false
			}
			b.WriteByte(meant[at])
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}

// lastRule notes one more thing of the last rule of a tag.
func (s *Schema) lastRule(word, value string) error {
	if len(s.Rules) == 0 {
		return fmt.Errorf("the tag does not say rule")
	}
	r := &s.Rules[len(s.Rules)-1]
	switch word {
	case "message":
		r.Message = value
	case "messageExpression":
		r.MessageExpression = value
	case "reason":
		r.Reason = value
		return oneOf(value, ruleReasons()...)
	case "fieldPath":
		r.FieldPath = value
	case "created":
		created := true
		r.Created = &created
	default:
		return fmt.Errorf("unknown word")
	}
	return nil
}
