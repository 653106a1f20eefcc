package schema

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
)

// Rule is a validation rule in the Common Expression Language: an expression that must be true.
// self is the value and oldSelf its previous value.
type Rule struct {
	Expression string

	// Message is the text of the cause if the expression is false. If it is empty,
	// MessageExpression returns the text; without either, the text shows the expression.
	Message, MessageExpression string

	Reason    string // reason of the cause; empty means FieldValueInvalid
	FieldPath string // path of the cause's field below the value, such as .spec['a.b']

	// Created makes oldSelf an optional value and applies a rule that uses oldSelf to new
	// values as well. It is nil if the definition does not set it.
	Created *bool
}

// HasRules reports whether the value or anything below it has rules.
func (s *Schema) HasRules() bool {
	return s != nil && s.expressions && s.hasRules(map[*Struct]bool{}) // s.expressions is too broad for recursive types
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

// ruleReasons returns the reasons that causes of rules may have.
func ruleReasons() []string {
	return []string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"}
}

// rules reads the validation rules of a value.
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

// Below returns the path of a value below at, for a relative path such as .spec['a.b']. It
// returns nil if the path is malformed or the schema has no such value.
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

// fieldPath returns the names in a path such as .spec['a.b'].
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

// quoted reads a text up to the closing quote and resolves backslash escapes.
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

// lastRule sets a property of the tag's last rule.
func (s *Schema) lastRule(word, value string) error {
	if len(s.Rules) == 0 {
		return fmt.Errorf("the tag has no rule")
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
