package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// rule is a rule of a schema that a value can break.
type rule int

const (
	ruleType rule = iota
	ruleFormat
	ruleWritten // as a field's own format wants it
	ruleRange   // of the format of a number
	ruleRequired
	ruleImmutable
	ruleEnum
	ruleMinLength
	ruleMaxLength
	rulePattern
	ruleMultipleOf
	ruleBetween
	ruleMinimum
	ruleExclusiveMinimum
	ruleMaximum
	ruleExclusiveMaximum
	ruleMinItems
	ruleMaxItems
	ruleMinProperties
	ruleMaxProperties
	ruleDuplicate
	ruleMapItem
	ruleAllOf
	ruleAnyOf
	ruleOneOf
	ruleNot
	ruleEffort
)

// wording is how a broken rule is told: there are two dialects, and where a kind
// comes from chooses one. In the texts {at} stands for the path of
// the value, {value} for the value, {limit} for what the rule asks for, and {s}
// for the plural of what the limit counts.
type wording struct {
	reason     meta.CauseReason
	definition string // to the clients of kinds that have a definition; suites compare it
	program    string // to those of kinds from Go, built-in or not; empty: the same
	whole      bool   // the cause has no field: the text says where
}

// wordings is every text of a schema fault.
var wordings = [...]wording{
	ruleType: {meta.CauseTypeInvalid, `Invalid value: {value}: {at} in body must be of type {limit}: {value}`,
		`Invalid value: {value}: must be of type {limit}`, false},
	ruleFormat: {meta.CauseTypeInvalid, `Invalid value: {value}: {at} in body must be of type {limit}: {value}`,
		`Invalid value: {value}: must have the format {limit}`, false},
	ruleWritten:   {meta.CauseInvalid, "", `Invalid value: {value}: {limit}`, false},
	ruleRange:     {meta.CauseInvalid, `Invalid value: "": Checked value must be of type {limit} in {at}`, "", true},
	ruleRequired:  {meta.CauseRequired, `Required value`, "", false},
	ruleImmutable: {meta.CauseInvalid, `Invalid value: {value}: field is immutable`, "", false},
	ruleEnum:      {meta.CauseNotSupported, `Unsupported value: {value}: supported values: {limit}`, "", false},
	ruleMinLength: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be at least {limit} chars long`,
		`Invalid value: {value}: must be at least {limit} character{s} long`, false},
	ruleMaxLength: {meta.CauseTooLong, `Too long: may not be more than {limit} byte{s}`, "", false},
	rulePattern: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should match '{limit}'`,
		`Invalid value: {value}: must match the pattern {limit}`, false},
	ruleMultipleOf: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be a multiple of {limit}`,
		`Invalid value: {value}: must be a multiple of {limit}`, false},
	ruleBetween: {meta.CauseInvalid, "", `Invalid value: {value}: must be between {limit}, inclusive`, false},
	ruleMinimum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be greater than or equal to {limit}`,
		`Invalid value: {value}: must be greater than or equal to {limit}`, false},
	ruleExclusiveMinimum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be greater than {limit}`,
		`Invalid value: {value}: must be greater than {limit}`, false},
	ruleMaximum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be less than or equal to {limit}`,
		`Invalid value: {value}: must be less than or equal to {limit}`, false},
	ruleExclusiveMaximum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be less than {limit}`,
		`Invalid value: {value}: must be less than {limit}`, false},
	ruleMinItems: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should have at least {limit} items`,
		`Invalid value: {value}: must have at least {limit} item{s}`, false},
	ruleMaxItems: {meta.CauseTooMany, `Too many: {value}: must have at most {limit} item{s}`, "", false},
	ruleMinProperties: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should have at least {limit} properties`,
		`Invalid value: {value}: must have at least {limit} item{s}`, false},
	ruleMaxProperties: {meta.CauseTooMany, `Too many: {value}: must have at most {limit} item{s}`, "", false},
	ruleDuplicate:     {meta.CauseDuplicate, `Duplicate value: {value}`, "", false},
	ruleMapItem:       {meta.CauseInvalid, `Invalid value: {value}: must be an object for an array of list-type map`, "", false},
	ruleAllOf:         {meta.CauseInvalid, `Invalid value: "": "{at}" must validate all the schemas (allOf){limit}`, "", true},
	ruleAnyOf:         {meta.CauseInvalid, `Invalid value: "": "{at}" must validate at least one schema (anyOf)`, "", true},
	ruleOneOf:         {meta.CauseInvalid, `Invalid value: "": "{at}" must validate one and only one schema (oneOf). {limit}`, "", true},
	ruleNot:           {meta.CauseInvalid, `Invalid value: "": "{at}" must not validate the schema (not)`, "", true},
	ruleEffort:        {meta.CauseInvalid, `Invalid value: checking the object against its schema takes too long`, "", false},
}

// wholeField is the field of causes for a value that fails as a whole.
const wholeField = "<nil>"

// cause says that the value at a path breaks a rule.
func (r rule) cause(at string, value, limit string, canonical bool) meta.Cause {
	w := wordings[r]
	text, plural, field := w.definition, "s", at
	if canonical && w.program != "" {
		text = w.program
	}
	if limit == "1" {
		plural = ""
	}
	if w.whole {
		field = wholeField
	}
	text = strings.NewReplacer("{at}", at, "{value}", value, "{limit}", limit, "{s}", plural).Replace(text)
	return meta.Cause{Reason: w.reason, Field: field, Message: text}
}

// typeWords returns the type that a value should have and the one that it has,
// as messages tell it: numbers and the like that stand where a format is
// declared are told by the format and the word of Go.
func typeWords(x any, s *Schema) (want, got string) {
	want, got = s.Type.String(), jsonType(x)
	if s.IntOrString {
		return "integer,string", got
	}
	if !hasKnownFormat(s) {
		return want, got
	}
	switch x.(type) {
	case int64:
		return s.Format, "int64"
	case float64:
		return s.Format, "float64"
	case bool, map[string]any:
		return s.Format, ""
	}
	return want, got
}

func hasKnownFormat(s *Schema) bool {
	switch s.Type {
	case Integer, Number:
		return slices.Contains([]string{"int32", "int64", "float", "double"}, s.Format)
	}
	return s.Format == "password" || knowsFormat(s.Format)
}

// jsonType returns the word of JSON schema for the type of a value.
func jsonType(x any) string {
	switch x.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// Bounds of values in messages.
const (
	maxShown  = 1 << 10 // bytes
	maxSorted = 100     // fields of an object
)

// show returns a value as messages quote it, clipped.
func show(x any) string {
	var text string
	switch x := x.(type) {
	case string:
		text = strconv.Quote(x[:min(len(x), maxShown)])
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return fmt.Sprint(x)
	default:
		text = string(appendShown(nil, x))
	}
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

// appendShown appends a value as JSON; what exceeds maxShown is left out.
func appendShown(b []byte, x any) []byte {
	if len(b) > maxShown {
		return b
	}
	switch x := x.(type) {
	case []any:
		b = append(b, '[')
		for i, e := range x {
			if len(b) > maxShown {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendShown(b, e)
		}
		return append(b, ']')
	case map[string]any:
		return appendObject(b, x)
	case ordered:
		return appendFields(b, x)
	case string:
		x = x[:min(len(x), maxShown)]
		return appendJSON(b, strings.ToValidUTF8(x, ""))
	}
	return appendJSON(b, x)
}

func appendObject(b []byte, m map[string]any) []byte {
	if len(m) > maxSorted {
		return append(b, fmt.Sprintf("{%d fields}", len(m))...)
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendShown(b, k), ':')
		b = appendShown(b, m[k])
	}
	return append(b, '}')
}

// ordered is an object of a Go struct, whose fields messages show in its order.
type ordered struct {
	fields map[string]any
	*Schema
}

// inOrder returns a value as messages show it.
func inOrder(x any, s *Schema) any {
	if m, ok := x.(map[string]any); ok && s.Struct.Canonical() {
		return ordered{m, s}
	}
	return x
}

func appendFields(b []byte, x ordered) []byte {
	b = append(b, '{')
	for _, f := range x.Struct.Fields {
		if e, ok := x.fields[f.Name]; ok {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = append(appendShown(b, f.Name), ':')
			b = appendShown(b, inOrder(e, f.Schema))
		}
	}
	return append(b, '}')
}

func appendJSON(b []byte, x any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // messages are for people
	if e.Encode(x) != nil {
		return append(b, '?')
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}
