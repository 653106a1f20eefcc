package meta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits on the text of selectors.
const (
	maxSelectorBytes = 64 << 10
	maxRequirements  = 1000
	maxSelectorSet   = 10000
)

// labelOperator is the operator of a label requirement.
type labelOperator string

// The label operators. The values are their text, except exists.
const (
	labelEquals    labelOperator = "="
	labelNotEquals labelOperator = "!="
	labelIn        labelOperator = "in"
	labelNotIn     labelOperator = "notin"
	labelExists    labelOperator = "exists"
	labelAbsent    labelOperator = "!"
	labelGreater   labelOperator = ">"
	labelLess      labelOperator = "<"
)

// labelRequirement is a condition of a label selector.
type labelRequirement struct {
	Key    string
	Op     labelOperator
	Values []string // sorted, without duplicates

	bound int64 // for > and <
}

// Selector is a parsed label selector. It matches an object if all of its requirements are
// satisfied. The zero value matches everything.
type Selector struct {
	reqs    []labelRequirement // sorted by key
	nothing bool               // matches no object
}

// Empty reports whether the selector matches everything.
func (s Selector) Empty() bool { return len(s.reqs) == 0 && !s.nothing }

// Matches reports whether an object matches the selector. get returns the value of a label and
// whether the object has it.
func (s Selector) Matches(get func(key string) (string, bool)) bool {
	if s.nothing {
		return false
	}
	for i := range s.reqs {
		v, ok := get(s.reqs[i].Key)
		if !s.reqs[i].matches(v, ok) {
			return false
		}
	}
	return true
}

func (r *labelRequirement) matches(v string, ok bool) bool {
	switch r.Op {
	case labelEquals:
		return ok && v == r.Values[0]
	case labelNotEquals:
		return !ok || v != r.Values[0]
	case labelIn:
		_, found := slices.BinarySearch(r.Values, v)
		return ok && found
	case labelNotIn:
		_, found := slices.BinarySearch(r.Values, v)
		return !ok || !found
	case labelExists:
		return ok
	case labelAbsent:
		return !ok
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if !ok || err != nil {
		return false
	}
	if r.Op == labelGreater {
		return n > r.bound
	}
	return n < r.bound
}

// String returns the text of the selector, which parses to an equal selector. It is "" for a
// selector that matches nothing.
func (s Selector) String() string {
	parts := make([]string, len(s.reqs))
	for i, r := range s.reqs {
		switch r.Op {
		case labelExists:
			parts[i] = r.Key
		case labelAbsent:
			parts[i] = "!" + r.Key
		case labelIn, labelNotIn:
			parts[i] = r.Key + " " + string(r.Op) + " (" + strings.Join(r.Values, ",") + ")"
		default:
			parts[i] = r.Key + string(r.Op) + r.Values[0]
		}
	}
	return strings.Join(parts, ",")
}

// Requirements returns the requirements as LabelSelectorRequirements. Requirements with > and <
// are omitted, because a LabelSelector cannot express them.
func (s Selector) Requirements() (list []LabelSelectorRequirement) {
	words := map[labelOperator]string{
		labelEquals: "In", labelIn: "In", labelNotEquals: "NotIn", labelNotIn: "NotIn", labelExists: "Exists", labelAbsent: "DoesNotExist",
	}
	for _, r := range s.reqs {
		if word := words[r.Op]; word != "" {
			list = append(list, LabelSelectorRequirement{Key: r.Key, Operator: word, Values: slices.Clone(r.Values)})
		}
	}
	return list
}

// ParseLabelSelector parses the text of a label selector: comma-separated requirements of the
// forms key=v, key==v, key!=v, key in (a,b), key notin (a,b), key, !key, key>n and key<n.
// Errors are 400 *Status. (Spec: conventions, label selectors.)
func ParseLabelSelector(text string) (Selector, error) {
	if len(text) > maxSelectorBytes {
		return Selector{}, selectorError("label", "longer than %d bytes", maxSelectorBytes)
	}
	p := labelParser{text: text}
	p.next()
	if p.tok == "" {
		return Selector{}, nil
	}
	var s Selector
	for {
		r, err := p.requirement()
		if err != nil {
			return Selector{}, err
		}
		if s.reqs = append(s.reqs, r); len(s.reqs) > maxRequirements {
			return Selector{}, selectorError("label", "more than %d requirements", maxRequirements)
		}
		if p.tok == "" {
			break
		}
		if p.tok != "," {
			return Selector{}, selectorError("label", "found %q, expected ',' or the end", clip(p.tok))
		}
		p.next()
	}
	s.sort()
	return s, nil
}

func (s *Selector) sort() {
	slices.SortStableFunc(s.reqs, func(a, b labelRequirement) int { return strings.Compare(a.Key, b.Key) })
}

// newLabelRequirement returns a validated requirement.
func newLabelRequirement(key string, op labelOperator, values ...string) (labelRequirement, error) {
	r := labelRequirement{Key: key, Op: op, Values: slices.Clone(values)}
	if faults := CheckQualifiedName(key); len(faults) > 0 {
		return r, selectorError("label", "key %q: %s", clip(key), faults[0])
	}
	slices.Sort(r.Values)
	r.Values = slices.Compact(r.Values)
	switch op {
	case labelExists, labelAbsent:
		if len(values) > 0 {
			return r, selectorError("label", "key %q: values are not allowed with %s", clip(key), op)
		}
	case labelIn, labelNotIn:
		if len(values) == 0 {
			return r, selectorError("label", "key %q: values are needed with %s", clip(key), op)
		}
	case labelEquals, labelNotEquals, labelGreater, labelLess:
		if len(values) != 1 {
			return r, selectorError("label", "key %q: one value is needed with %s", clip(key), op)
		}
	default:
		return r, selectorError("label", "%q is not a valid operator", clip(string(op)))
	}
	if op == labelGreater || op == labelLess {
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return r, selectorError("label", "key %q: %s needs an integer", clip(key), op)
		}
		r.bound = n
	}
	for _, v := range r.Values {
		if faults := CheckLabelValue(v); len(faults) > 0 {
			return r, selectorError("label", "value %q: %s", clip(v), faults[0])
		}
	}
	return r, nil
}

// LabelSelectorAsSelector returns the label selector with the matchLabels and matchExpressions
// in m. A nil map matches nothing, and an empty map everything. Errors are 400 *Status.
func LabelSelectorAsSelector(m map[string]any) (Selector, error) {
	s := Selector{nothing: m == nil}
	o := NewObject(m)
	for k, v := range o.Map("matchLabels") {
		text, ok := v.(string)
		if !ok {
			return s, selectorError("label", "matchLabels[%s] must be a string", clip(k))
		}
		if err := s.add(k, labelEquals, text); err != nil {
			return s, err
		}
	}
	words := map[string]labelOperator{"In": labelIn, "NotIn": labelNotIn, "Exists": labelExists, "DoesNotExist": labelAbsent}
	for _, v := range o.List("matchExpressions") {
		e, _ := v.(map[string]any)
		x := NewObject(e)
		op, ok := words[x.String("operator")]
		if !ok {
			return s, selectorError("label", "%q is not a valid operator", clip(x.String("operator")))
		}
		if err := s.add(x.String("key"), op, x.Strings("values")...); err != nil {
			return s, err
		}
	}
	s.sort()
	return s, nil
}

func (s *Selector) add(key string, op labelOperator, values ...string) error {
	r, err := newLabelRequirement(key, op, values...)
	if err == nil {
		s.reqs = append(s.reqs, r)
	}
	return err
}

// labelParser splits a selector into tokens: operators, parentheses, commas and words. tok is
// "" at the end.
type labelParser struct {
	text string
	pos  int
	tok  string
}

func special(c byte) bool { return strings.IndexByte("=!(),<>", c) >= 0 }
func blank(c byte) bool   { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func (p *labelParser) next() {
	for p.pos < len(p.text) && blank(p.text[p.pos]) {
		p.pos++
	}
	start := p.pos
	switch {
	case p.pos == len(p.text):
	case special(p.text[p.pos]):
		p.pos++
		if c := p.text[start]; (c == '=' || c == '!') && p.pos < len(p.text) && p.text[p.pos] == '=' {
			p.pos++
		}
	default:
		for p.pos < len(p.text) && !special(p.text[p.pos]) && !blank(p.text[p.pos]) {
			p.pos++
		}
	}
	p.tok = p.text[start:p.pos]
}

func (p *labelParser) word() bool { return p.tok != "" && !special(p.tok[0]) }

func (p *labelParser) requirement() (labelRequirement, error) {
	absent := p.tok == "!"
	if absent {
		p.next()
	}
	if !p.word() {
		return labelRequirement{}, selectorError("label", "found %q, expected a key", clip(p.tok))
	}
	key := p.tok
	p.next()
	switch {
	case absent:
		return newLabelRequirement(key, labelAbsent)
	case p.tok == "" || p.tok == ",":
		return newLabelRequirement(key, labelExists)
	}
	op := labelOperator(p.tok)
	if op == "==" {
		op = labelEquals
	}
	p.next()
	switch op {
	case labelIn, labelNotIn:
		values, err := p.set()
		if err != nil {
			return labelRequirement{}, err
		}
		return newLabelRequirement(key, op, values...)
	case labelEquals, labelNotEquals, labelGreater, labelLess:
		value := ""
		if p.word() {
			value = p.tok
			p.next()
		}
		return newLabelRequirement(key, op, value)
	}
	return labelRequirement{}, selectorError("label", "found %q, expected an operator: in, notin, =, ==, !=, >, <", clip(string(op)))
}

// set parses a list of values, "(a,b)". An omitted value is the empty string.
func (p *labelParser) set() ([]string, error) {
	if p.tok != "(" {
		return nil, selectorError("label", "found %q, expected '('", clip(p.tok))
	}
	var values []string
	for {
		p.next()
		value := ""
		if p.word() {
			value = p.tok
			p.next()
		}
		if values = append(values, value); len(values) > maxSelectorSet {
			return nil, selectorError("label", "more than %d values", maxSelectorSet)
		}
		switch p.tok {
		case ")":
			p.next()
			return values, nil
		case ",":
		default:
			return nil, selectorError("label", "found %q, expected ',' or ')'", clip(p.tok))
		}
	}
}

// FieldRequirement is a condition of a field selector: the field has the value, or does not
// have it if Not is set.
type FieldRequirement struct {
	Field, Value string
	Not          bool
}

// FieldSelector is a parsed field selector. It matches an object if all of its requirements are
// satisfied. The zero value matches everything.
type FieldSelector struct{ reqs []FieldRequirement }

// ParseFieldSelector parses comma-separated requirements of the forms field=v, field==v and
// field!=v. In values, \, \= and \\ stand for the characters after the backslash. The kind
// checks whether the fields exist. Errors are 400 *Status.
func ParseFieldSelector(text string) (FieldSelector, error) {
	var s FieldSelector
	if len(text) > maxSelectorBytes {
		return s, selectorError("field", "longer than %d bytes", maxSelectorBytes)
	}
	for _, term := range splitTerms(text) {
		if term == "" {
			continue
		}
		r, err := parseFieldTerm(term)
		if err != nil {
			return FieldSelector{}, err
		}
		if s.reqs = append(s.reqs, r); len(s.reqs) > maxRequirements {
			return FieldSelector{}, selectorError("field", "more than %d requirements", maxRequirements)
		}
	}
	return s, nil
}

// Requirements returns the requirements in the order of the text. The result is shared and must
// not be changed.
func (s FieldSelector) Requirements() []FieldRequirement { return s.reqs }

// Renamed returns the selector with each field replaced by name(field), or the first error of
// name.
func (s FieldSelector) Renamed(name func(field string) (string, error)) (FieldSelector, error) {
	out := FieldSelector{reqs: slices.Clone(s.reqs)}
	for i := range out.reqs {
		var err error
		if out.reqs[i].Field, err = name(out.reqs[i].Field); err != nil {
			return FieldSelector{}, err
		}
	}
	return out, nil
}

// Empty reports whether the selector matches everything.
func (s FieldSelector) Empty() bool { return len(s.reqs) == 0 }

// Value returns the value that the selector requires of field, if any.
func (s FieldSelector) Value(field string) (string, bool) {
	for _, r := range s.reqs {
		if r.Field == field && !r.Not {
			return r.Value, true
		}
	}
	return "", false
}

// Matches reports whether an object matches the selector. get returns the value of a field.
func (s FieldSelector) Matches(get func(field string) string) bool {
	for _, r := range s.reqs {
		if (get(r.Field) == r.Value) == r.Not {
			return false
		}
	}
	return true
}

// String returns the text of the selector, which parses to an equal selector.
func (s FieldSelector) String() string {
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`)
	parts := make([]string, len(s.reqs))
	for i, r := range s.reqs {
		op := "="
		if r.Not {
			op = "!="
		}
		parts[i] = r.Field + op + escape.Replace(r.Value)
	}
	return strings.Join(parts, ",")
}

// splitTerms splits text at commas that are not escaped.
func splitTerms(text string) []string {
	var terms []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ',':
			terms = append(terms, text[start:i])
			start = i + 1
		}
	}
	return append(terms, text[start:])
}

func parseFieldTerm(term string) (FieldRequirement, error) {
	i := strings.IndexAny(term, "=!")
	for i >= 0 && term[i] == '!' && !strings.HasPrefix(term[i:], "!=") {
		next := strings.IndexAny(term[i+1:], "=!")
		if next < 0 {
			i = -1
			break
		}
		i += 1 + next
	}
	if i < 0 {
		return FieldRequirement{}, selectorError("field", "%q has no operator", clip(term))
	}
	r := FieldRequirement{Field: term[:i], Not: term[i] == '!'}
	rest := term[i+1:]
	if r.Not || strings.HasPrefix(rest, "=") {
		rest = rest[1:]
	}
	var b strings.Builder
	for j := 0; j < len(rest); j++ {
		switch c := rest[j]; c {
		case '=':
			return r, selectorError("field", "%q has an unescaped '='", clip(term))
		case '\\':
			if j++; j == len(rest) || strings.IndexByte(`\,=`, rest[j]) < 0 {
				return r, selectorError("field", "%q has an unknown escape", clip(term))
			}
			b.WriteByte(rest[j])
		default:
			b.WriteByte(c)
		}
	}
	r.Value = b.String()
	return r, nil
}

func selectorError(what, format string, args ...any) *Status {
	return BadRequest("unable to parse the %s selector: %s", what, fmt.Sprintf(format, args...))
}

// maxShown bounds a caller's text in a message, in bytes.
const maxShown = 1 << 10

// clip keeps a caller's text in a message short.
func clip(s string) string {
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
