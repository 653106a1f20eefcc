package cel

import (
	"math"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"

	"orch.io/controlplane/api/schema"
)

// largestRequest bounds what can be in an object where its schema does not, in bytes.
// Whether a rule may be written follows from it: it stays as it is, whatever a server takes.
const largestRequest = 3 << 20

// The lengths of texts as JSON, in bytes.
const (
	lengthTime     = 32
	lengthDate     = 12
	leastTime      = 21
	leastDuration  = 3
	lengthDuration = 32
)

// leastSize returns how many bytes of JSON a value takes at least.
func leastSize(s *schema.Schema) uint64 { return leastSizeBelow(s, maxDepth) }

// maxDepth bounds how deep schemas are looked into: those of Go types can hold themselves.
const maxDepth = 64

func leastSizeBelow(s *schema.Schema, depth int) uint64 {
	switch {
	case s == nil || s.IntOrString || depth == 0:
		return 1
	case s.Type == schema.Boolean:
		return 4
	case s.Type == schema.String:
		return [...]uint64{formText: 2, formBytes: 2, formDuration: leastDuration, formDate: lengthDate, formTime: leastTime}[formOf(s)]
	case s.Type == schema.Array:
		return 2
	case s.Type != schema.Object:
		return 1
	}
	size := uint64(2)
	for _, name := range s.Required {
		if f := s.Struct.Field(name); f != nil && f.Schema.Default == nil {
			size += uint64(len(name)) + leastSizeBelow(f.Schema, depth-1) + 4
		}
	}
	return size
}

// mostOf returns how many elements a list or map of values of a schema can have, each with
// so many bytes besides.
func mostOf(s *schema.Schema, besides uint64) uint64 {
	return (largestRequest - 2) / (leastSize(s) + besides)
}

func bound(n *int64) uint64 { return uint64(max(*n, 0)) } // not negative

// mostElements returns how many items, entries, or bytes a value can have.
func mostElements(s *schema.Schema) uint64 {
	switch {
	case s.Type == schema.Array && s.MaxItems != nil:
		return bound(s.MaxItems)
	case s.Type == schema.Array:
		return mostOf(s.Items, 1)
	case s.Type == schema.Object && s.MaxProperties != nil:
		return bound(s.MaxProperties)
	case s.Type == schema.Object && s.Values != nil:
		return mostOf(s.Values, 6)
	}
	switch formOf(s) {
	case formDuration:
		return lengthDuration
	case formDate:
		return lengthDate
	case formTime:
		return lengthTime
	}
	switch {
	case s.MaxLength != nil && formOf(s) == formBytes:
		return bound(s.MaxLength)
	case s.MaxLength != nil: // of runes, which have up to four bytes
		return min(bound(s.MaxLength), largestRequest) * 4
	case len(s.Enum) > 0 && s.Type == schema.String:
		longest := 0
		for _, v := range s.Enum {
			text, _ := v.(string)
			longest = max(longest, len(text))
		}
		return uint64(longest)
	}
	return largestRequest - 2
}

// sizes estimate how large values are by their schemas. Objects, keys of maps, numbers and
// booleans count nothing, as where rules were first written.
type sizes map[string]*schema.Schema // by variable

// EstimateSize implements cost.Estimator.
func (z sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if e := node.Expr(); len(path) == 0 || e != nil && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return nil // has(self.a) is at the path of a, and no more than a bool
	}
	s, ok := z[path[0]]
	if !ok { // an item of what an expression made: no larger than what it was made of
		s = z[self]
	}
	for _, step := range path[1:] {
		if s == nil {
			return nil
		}
		switch step {
		case "@items":
			s = s.Items
		case "@values":
			s = s.Values
		case "@keys":
			return &cost.SizeEstimate{}
		default:
			if s.Values != nil {
				s = s.Values
			} else {
				s, _ = fieldOf(s, unescape(step))
			}
		}
	}
	switch {
	case s == nil:
		return nil
	case s.Type == schema.Object && s.Values == nil, s.Type == schema.Boolean, s.Type == schema.Integer, s.Type == schema.Number:
		return &cost.SizeEstimate{}
	}
	return &cost.SizeEstimate{Min: 0, Max: mostElements(s)}
}

// EstimateCallCost implements cost.Estimator: the models of functions say it.
func (z sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// multiply never overflows.
func multiply(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
