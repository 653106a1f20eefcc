package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/suggest"
)

// tag is a parsed schema:"..." tag. Go documents its words.
type tag []entry

type entry struct {
	key, value string
	hasValue   bool
}

// parseTag splits a tag. apply checks the words.
func parseTag(text string) tag {
	if text == "" {
		return nil
	}
	var out tag
	for _, part := range splitEscaped(text, ',') {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		out = append(out, entry{key, value, ok})
	}
	return out
}

// splitEscaped splits s at sep, except after a backslash, which it removes.
func splitEscaped(s string, sep byte) []string {
	if strings.IndexByte(s, '\\') < 0 {
		return strings.Split(s, string(sep))
	}
	var out []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == sep:
			b.WriteByte(sep)
			i++
		case s[i] == sep:
			out = append(out, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(out, b.String())
}

// apply applies the tag to the field f. It returns an error for each invalid entry.
func (t tag) apply(f *Field) []error {
	var errs []error
	for _, e := range t {
		err := e.applyTo(f)
		if rule := strings.Replace(e.key, "reason.", "", 1); err == nil && rule != e.key && !t.has(rule) {
			err = fmt.Errorf("the tag has no %s", rule)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tag schema, %s: %w", e.key, err))
		}
	}
	if f.Required && f.Schema.Gate != "" {
		errs = append(errs, errors.New("tag schema, gate: a required field cannot have a gate, because no object would be valid while it is off"))
	}
	return errs
}

// EnumOf returns the words that the tag of a Go field of T, or of its items, allows. It is for
// code that reports an invalid word itself, before validation or at another path; the field is
// unchecked then. The result is shared and must not be changed.
func EnumOf[T any](field string) []string {
	at, known := structField{reflect.TypeFor[T](), field}, &orchTypes().enums // tags do not depend on the profile
	if words, ok := known.Load(at); ok {
		return words.([]string)
	}
	var words []string
	f, _ := at.of.FieldByName(field)
	for _, e := range parseTag(f.Tag.Get("schema")) {
		if e.key == "enum" || e.key == "items.enum" {
			words = splitEscaped(e.value, '|')
		}
	}
	known.Store(at, words)
	return words
}

type structField struct {
	of   reflect.Type
	name string
}

func (t tag) has(key string) bool {
	return slices.ContainsFunc(t, func(e entry) bool { return e.key == key })
}

func (e entry) applyTo(f *Field) error {
	switch e.key {
	case "required":
		f.Required, f.Expected = true, true
		return e.noValue()
	case "optional":
		f.Expected = false
		return e.noValue()
	case "gate":
		if f.Schema.Gate = e.value; e.value == "" {
			return errors.New("the value is missing")
		}
		return nil
	}
	s := f.Schema
	for {
		prefix, rest, ok := strings.Cut(e.key, ".")
		if !ok {
			return e.applySchema(s)
		}
		switch {
		case prefix == "items" && s.Items != nil:
			s = s.Items
		case prefix == "values" && s.Values != nil:
			s = s.Values
		case prefix == "reason":
			return s.giveReason(rest, e.value)
		case prefix == "rule":
			return s.lastRule(rest, e.value)
		case rest == "required" && s.Struct.Field(prefix) != nil && s.Struct.Field(prefix).Schema.Gate != "":
			return errors.New("a field with a gate cannot be required, because no object would be valid while it is off")
		case rest == "required" && s.Struct.Field(prefix) != nil:
			s.Required = append(s.Required, prefix)
			return e.noValue()
		default:
			return fmt.Errorf("the value has no %s", prefix)
		}
		e.key = rest
	}
}

// giveReason sets the text that replaces the message of a violated rule.
func (s *Schema) giveReason(word, text string) error {
	rules := map[string]wording.Rule{
		"required": wording.Required, "pattern": wording.Pattern, "range": wording.Between, "multipleOf": wording.MultipleOf,
		"min": wording.Minimum, "max": wording.Maximum, "exclusiveMin": wording.ExclusiveMinimum, "exclusiveMax": wording.ExclusiveMaximum,
	}
	r, ok := rules[word]
	if !ok || text == "" {
		return fmt.Errorf("reason needs a text, and applies to required, pattern and rules for numbers")
	}
	if s.reasons == nil {
		s.reasons = map[wording.Rule]string{}
	}
	s.reasons[r] = text
	return nil
}

func (e entry) noValue() error {
	if e.hasValue {
		return fmt.Errorf("must not have a value")
	}
	return nil
}

func (e entry) applySchema(s *Schema) error {
	if p := e.flag(s); p != nil {
		*p = true
		return e.noValue()
	}
	if e.key == "unique" {
		s.Unique = cmp.Or(e.value, UniqueInNamespace)
		if e.hasValue && e.value != UniqueInCluster {
			return fmt.Errorf("the only value is %s", UniqueInCluster)
		}
		return nil
	}
	if !e.hasValue {
		if slices.Contains(tagWords(), e.key) {
			return errors.New("the value is missing")
		}
		return fmt.Errorf("unknown word%s", suggest.Near(e.key, tagWords()...))
	}
	if p := e.count(s); p != nil {
		n, err := strconv.ParseInt(e.value, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a count", e.value)
		}
		if *p != nil {
			return errors.New("the bound is set twice")
		}
		*p = &n
		return nil
	}
	if p := e.number(s); p != nil {
		n, err := strconv.ParseFloat(e.value, 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return fmt.Errorf("%q is not a finite number", e.value)
		case p == &s.MultipleOf && n <= 0:
			return fmt.Errorf("%q is not greater than 0", e.value)
		case *p != nil:
			return fmt.Errorf("the bound is set twice")
		}
		*p = &n
		return nil
	}
	return e.applyText(s)
}

func (e entry) flag(s *Schema) *bool {
	switch e.key {
	case "immutable":
		return &s.Immutable
	case "nullable":
		return &s.Nullable
	case "deprecated":
		return &s.Deprecated
	case "preserve":
		return &s.Preserve
	case "embedded":
		return &s.Embedded
	case "uniqueItems":
		return &s.UniqueItems
	case "intOrString":
		return &s.IntOrString
	case "repeats":
		return &s.Repeats
	case "unchecked":
		return &s.Unchecked
	case "ratcheting":
		return &s.Ratcheting
	case "milli":
		return &s.milli
	}
	return nil
}

func (e entry) count(s *Schema) **int64 {
	switch e.key {
	case "minLength":
		return &s.MinLength
	case "maxLength":
		return &s.MaxLength
	case "minItems":
		return &s.MinItems
	case "maxItems":
		return &s.MaxItems
	case "minProperties":
		return &s.MinProperties
	case "maxProperties":
		return &s.MaxProperties
	}
	return nil
}

func (e entry) number(s *Schema) **float64 {
	switch e.key {
	case "min":
		return &s.Minimum
	case "max":
		return &s.Maximum
	case "exclusiveMin":
		s.ExclusiveMin = true
		return &s.Minimum
	case "exclusiveMax":
		s.ExclusiveMax = true
		return &s.Maximum
	case "multipleOf":
		return &s.MultipleOf
	}
	return nil
}

func (e entry) applyText(s *Schema) (err error) {
	if e.value == "" && e.key != "default" && e.key != "title" {
		return errors.New("the value is missing")
	}
	switch e.key {
	case "default":
		s.Default, err = literal(s, e.value)
	case "enum":
		for _, word := range splitEscaped(e.value, '|') {
			v, err := literal(s, word)
			if err != nil {
				return err
			}
			if slices.Contains(s.Enum, v) {
				return fmt.Errorf("%q is given twice", word)
			}
			s.Enum = append(s.Enum, v)
		}
	case "pattern":
		s.Pattern = e.value
		s.re, err = compilePattern(e.value)
	case "format":
		err = formatFits(s, e.value)
		s.Format = e.value
	case "keyFormat":
		if s.KeyFormat = e.value; fieldFormat(e.value) == nil {
			err = fmt.Errorf("%q is not a format of strings", e.value)
		}
	case "range":
		s.Between = true
		low, high, _ := strings.Cut(e.value, "|")
		err = errors.Join(entry{"min", low, true}.applySchema(s), entry{"max", high, true}.applySchema(s))
	case "title":
		s.Title = e.value
	case "listType":
		s.ListType = e.value
		err = oneOf(e.value, "atomic", "set", "map")
	case "listMapKeys":
		s.ListKeys = splitEscaped(e.value, '|')
	case "mapType":
		s.MapType = e.value
		err = oneOf(e.value, "atomic", "granular")
	case "rule":
		s.Rules = append(s.Rules, Rule{Expression: e.value})
	case "patchStrategy":
		s.PatchStrategy = strings.ReplaceAll(e.value, "|", ",")
	case "patchMergeKey":
		s.PatchMergeKey = e.value
	default:
		err = fmt.Errorf("unknown word%s", suggest.Near(e.key, tagWords()...))
	}
	return err
}

// tagWords returns the words that a tag entry can begin with.
func tagWords() []string {
	return []string{
		"required", "optional", "immutable", "nullable", "deprecated", "preserve", "embedded", "uniqueItems", "intOrString", "repeats",
		"unchecked", "ratcheting", "milli", "unique", "default", "enum", "format", "keyFormat", "pattern", "title", "range", "min", "max",
		"exclusiveMin", "exclusiveMax", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
		"listType", "listMapKeys", "mapType", "patchStrategy", "patchMergeKey", "rule", "gate",
	}
}

// tagFault returns why parts of a field's tag would be ignored: text that is not of the form
// key:"value", or a misspelled key schema. It returns "" for a valid tag.
func tagFault(t reflect.StructTag) string {
	rest := strings.TrimSpace(string(t))
	for rest != "" {
		key, value, ok := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(value)
		if !ok || err != nil || key == "" || strings.ContainsAny(key, " \"\t") {
			return fmt.Sprintf("malformed tag at %q: want key:\"value\" pairs", rest)
		}
		if near := suggest.Near(key, "schema"); near != "" {
			return fmt.Sprintf("unknown tag %s%s", key, near)
		}
		rest = strings.TrimSpace(value[len(quoted):])
	}
	return ""
}

// tagConflicts returns the rules of a field's schema that do not apply to its type or
// contradict each other.
func tagConflicts(s *Schema) (faults []string) {
	if s == nil {
		return nil
	}
	wrong := func(given bool, what, needs string, fits bool) {
		if given && !fits && s.Type != Any && !s.IntOrString {
			faults = append(faults, what+" is for "+needs)
		}
	}
	wrong(s.MinLength != nil || s.MaxLength != nil, "a length", "strings", s.Type == String)
	wrong(s.Pattern != "", "pattern", "strings", s.Type == String)
	wrong(s.Minimum != nil || s.Maximum != nil || s.MultipleOf != nil, "a range", "numbers", s.Type == Integer || s.Type == Number)
	wrong(s.MinItems != nil || s.MaxItems != nil || s.UniqueItems, "a rule for items", "lists", s.Type == Array)
	wrong(s.ListType != "" || len(s.ListKeys) > 0, "listType", "lists", s.Type == Array || s.Wire != Plain)
	wrong(len(s.ListKeys) > 0, "listMapKeys", "lists with listType=map", s.ListType == "map")
	wrong(s.MapType != "", "mapType", "maps and structs", s.Type == Object || s.Wire != Plain)
	wrong(s.Repeats, "repeats", "lists with a listType", s.ListType != "")
	if s.Unique != "" && (s.Type == Any || s.Type == Object || s.Type == Array) && !s.IntOrString && s.Wire != IntOrString {
		faults = append(faults, "unique is for scalars; use items.unique for items of a list")
	}
	wrong(s.KeyFormat != "", "a format of keys", "maps", s.Values != nil)
	wrong(s.MinProperties != nil || s.MaxProperties != nil, "a number of properties", "maps and structs", s.Type == Object)
	wrong(s.Preserve, "preserve", "objects", s.Type == Object || s.Wire != Plain)
	wrong(s.Embedded, "embedded", "objects", s.Type == Object || s.Wire != Plain)
	if s.Minimum != nil && s.Maximum != nil && *s.Minimum > *s.Maximum {
		faults = append(faults, "the minimum exceeds the maximum")
	}
	for _, r := range [][2]*int64{{s.MinLength, s.MaxLength}, {s.MinItems, s.MaxItems}, {s.MinProperties, s.MaxProperties}} {
		if r[0] != nil && r[1] != nil && *r[0] > *r[1] {
			faults = append(faults, "a minimum exceeds the maximum")
		}
	}
	if s.ListType == "map" && len(s.ListKeys) == 0 {
		faults = append(faults, "listType=map needs listMapKeys")
	}
	if s.Type == Array && len(s.ListKeys) > 0 && s.Items != nil && s.Items.Struct == nil {
		faults = append(faults, "listMapKeys needs items that are structs")
	}
	return slices.Concat(faults, tagConflicts(s.Items), tagConflicts(s.Values))
}

func oneOf(v string, words ...string) error {
	if slices.Contains(words, v) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s%s", v, strings.Join(words, ", "), suggest.Near(v, words...))
}

// literal parses a value in a tag: a plain text for strings, JSON for all other types.
func literal(s *Schema, text string) (any, error) {
	var v any = text
	if s.Type != String || s.IntOrString {
		parsed, err := meta.ParseJSON([]byte(text))
		switch {
		case err == nil:
			v = parsed
		case !s.IntOrString && s.Type != Any:
			return nil, fmt.Errorf("%q does not fit the type of the field", text)
		}
	}
	fits := (&validator{}).hasType(v, s)
	if n, ok := v.(int64); ok && s.Type == Integer {
		low, high := integerRange(s.Format)
		fits = n >= low && n <= high
	}
	if !fits {
		return nil, fmt.Errorf("%q does not fit the type of the field", text)
	}
	return v, nil
}

// formatFits returns an error if values of s cannot have the format, or if the format is
// unknown. An integer format may be narrower than the Go type but not wider.
func formatFits(s *Schema, format string) error {
	text := format == formatSigner || fieldFormat(format) != nil || knowsFormat(format) || slices.Contains(documentedFormats(), format)
	integers := []string{"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
	numbers := []string{"float", "double"}
	for _, f := range []struct {
		is    bool
		needs string
		fits  bool
	}{
		{format == formatPort || format == formatPercent, "integers that may be strings", s.IntOrString || s.Type == Any && s.Wire == Raw},
		{format == formatLabels, "maps of strings", s.Values != nil && s.Values.Type == String},
		{format == formatSelector, "selectors", s.Struct.Field("matchLabels") != nil},
		{text, "strings", s.Type == String && s.Wire == Plain || s.Type == Any},
		{slices.Contains(integers, format), "integers of at least that width", s.Type == Any || s.Type == Integer && narrower(format, s.Format)},
		{slices.Contains(numbers, format), "numbers", s.Type == Any || s.Type == Number},
	} {
		switch {
		case f.is && f.fits:
			return nil
		case f.is:
			return fmt.Errorf("%q is for %s", format, f.needs)
		}
	}
	return fmt.Errorf("unknown format %q", format)
}

// documentedFormats returns the formats of OpenAPI that are not checked.
func documentedFormats() []string {
	return []string{
		"binary", "char", "commonmark", "html", "idn-email", "idn-hostname", "iri", "iri-reference", "json-pointer",
		"media-range", "password", "regex", "relative-json-pointer", "time", "uri-reference", "uri-template",
	}
}

// narrower reports whether the range of an integer format is within the range of other.
func narrower(format, other string) bool {
	low, high := integerRange(format)
	least, most := integerRange(other)
	return low >= least && high <= most
}
