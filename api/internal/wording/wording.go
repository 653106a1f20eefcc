// Package wording has the messages for violations of validation rules.
package wording

import (
	"bytes"
	"encoding/json"
	"strings"

	"orch.io/controlplane/api/meta"
)

// Rule is a rule that a value can violate.
type Rule int

// The rules.
const (
	Required Rule = iota
	Invalid       // any other rule, described by why
	Broken        // like Invalid, but without the value
	Forbidden
	NotFound
	Type
	Shape // like Type, for definitions of kinds
	Format
	Range // of a number's format
	Immutable
	Enum
	MinLength
	MaxLength
	Pattern
	MultipleOf
	Multiple // a MultipleOf in a definition that is not positive
	Between
	Minimum
	ExclusiveMinimum
	Maximum
	ExclusiveMaximum
	MinItems
	MaxItems
	MinProperties
	MaxProperties
	Duplicate
	MapItem
	ForbiddenProperty
	AllOf
	AnyOf
	OneOf
	Not
	Effort
)

// words has the messages for violations of a rule. There are two dialects, for custom kinds and
// for kinds from Go. The placeholders are {at} for the path of the value, {value} for the
// value, {limit} for the limit that the rule sets, {s} for the plural ending of a count, and
// {why} for a colon and the limit, or nothing without a limit.
type words struct {
	reason     meta.CauseType
	definition string // message for kinds from a definition; conformance suites compare it
	program    string // message for kinds from Go, built-in or not; empty if it is the same
	whole      bool   // the cause has no field; the message has the path
}

// table has the messages of all violations that schemas and hooks of kinds report. Metadata,
// patches and field ownership have messages of their own.
var table = [...]words{
	Type: {meta.CauseTypeInvalid, `Invalid value: {value}: {at} in body must be of type {limit}: {value}`,
		`Invalid value: {value}: must be of type {limit}`, false},
	Format: {meta.CauseTypeInvalid, `Invalid value: {value}: {at} in body must be of type {limit}: {value}`,
		`Invalid value: {value}: must have the format {limit}`, false},
	Invalid:   {meta.CauseInvalid, `Invalid value: {value}{why}`, "", false},
	Broken:    {meta.CauseInvalid, `Invalid value{why}`, "", false},
	Range:     {meta.CauseInvalid, `Invalid value: "": Checked value must be of type {limit} in {at}`, "", true},
	Required:  {meta.CauseRequired, `Required value{why}`, "", false},
	Immutable: {meta.CauseInvalid, `Invalid value: {value}: field is immutable`, "", false},
	Enum:      {meta.CauseNotSupported, `Unsupported value: {value}: supported values: {limit}`, "", false},
	MinLength: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be at least {limit} chars long`,
		`Invalid value: {value}: must be at least {limit} character{s} long`, false},
	MaxLength: {meta.CauseTooLong, `Too long: may not be more than {limit} byte{s}`, "", false},
	Pattern: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should match '{limit}'`,
		`Invalid value: {value}: must match the pattern {limit}`, false},
	MultipleOf: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be a multiple of {limit}`,
		`Invalid value: {value}: must be a multiple of {limit}`, false},
	Multiple: {meta.CauseInvalid, `Invalid value: {limit}: factor MultipleOf declared for {at} must be positive: {limit}`, "", false},
	Between:  {meta.CauseInvalid, "", `Invalid value: {value}: must be between {limit}, inclusive`, false},
	Minimum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be greater than or equal to {limit}`,
		`Invalid value: {value}: must be greater than or equal to {limit}`, false},
	ExclusiveMinimum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be greater than {limit}`,
		`Invalid value: {value}: must be greater than {limit}`, false},
	Maximum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be less than or equal to {limit}`,
		`Invalid value: {value}: must be less than or equal to {limit}`, false},
	ExclusiveMaximum: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should be less than {limit}`,
		`Invalid value: {value}: must be less than {limit}`, false},
	MinItems: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should have at least {limit} items`,
		`Invalid value: {value}: must have at least {limit} item{s}`, false},
	MaxItems: {meta.CauseTooMany, `Too many: {value}: must have at most {limit} item{s}`, "", false},
	MinProperties: {meta.CauseInvalid, `Invalid value: {value}: {at} in body should have at least {limit} properties`,
		`Invalid value: {value}: must have at least {limit} item{s}`, false},
	MaxProperties:     {meta.CauseTooMany, `Too many: {value}: must have at most {limit} item{s}`, "", false},
	Duplicate:         {meta.CauseDuplicate, `Duplicate value: {value}`, "", false},
	MapItem:           {meta.CauseInvalid, `Invalid value: {value}: must be an object for an array of list-type map`, "", false},
	ForbiddenProperty: {meta.CauseInvalid, `Invalid value: {value}: {at}.{limit} in body is a forbidden property`, "", false},
	AllOf:             {meta.CauseInvalid, `Invalid value: "": "{at}" must validate all the schemas (allOf){limit}`, "", true},
	AnyOf:             {meta.CauseInvalid, `Invalid value: "": "{at}" must validate at least one schema (anyOf)`, "", true},
	OneOf:             {meta.CauseInvalid, `Invalid value: "": "{at}" must validate one and only one schema (oneOf). {limit}`, "", true},
	Not:               {meta.CauseInvalid, `Invalid value: "": "{at}" must not validate the schema (not)`, "", true},
	Effort:            {meta.CauseInvalid, `Invalid value: checking the object against its schema takes too long`, "", false},
	Forbidden:         {meta.CauseForbidden, `Forbidden{why}`, "", false},
	NotFound:          {meta.CauseNotFound, `Not found: {value}`, "", false},
	Shape:             {meta.CauseTypeInvalid, `Invalid value: {value}: must be {limit}`, "", false},
}

// WholeField is the field of causes for which words.whole is set.
const WholeField = "<nil>"

// Cause returns the cause for a violation of the rule by the value at a path. program selects
// the dialect of kinds from Go. If value is empty, the message does not show it.
func (r Rule) Cause(at, value, limit string, program bool) meta.StatusCause {
	w := table[r]
	text, plural, why, field := w.definition, "s", "", at
	if program && w.program != "" {
		text = w.program
	}
	if limit == "1" {
		plural = ""
	}
	if limit != "" {
		why = ": " + limit
	}
	if value == "" {
		text = strings.Replace(text, ": {value}", "", 1)
	}
	if w.whole {
		field = WholeField
	}
	text = strings.NewReplacer("{at}", at, "{value}", value, "{limit}", limit, "{s}", plural, "{why}", why).Replace(text)
	return meta.StatusCause{Reason: w.reason, Field: field, Message: text}
}

// AppendJSON appends a value as messages quote it.
func AppendJSON(b []byte, x any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // people read messages
	if e.Encode(x) != nil {
		return append(b, '?')
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}
