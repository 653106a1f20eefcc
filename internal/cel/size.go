package cel

import (
	"math"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"

	"orch.io/controlplane/api/schema"
)

// largestRequest limits the size of an object, in bytes, where its schema does not. Cost
// estimates depend on it, so that it must not change: the server's own limit on requests does
// not affect which rules are accepted.
const largestRequest = 3 << 20

// The lengths of values with a format as JSON, in bytes.
const (
	lengthTime     = 32
	lengthDate     = 12
	leastTime      = 21
	leastDuration  = 3
	lengthDuration = 32
)

// leastSize returns the minimum size of a value as JSON, in bytes.
func leastSize(s *schema.Schema) uint64 { return leastSizeBelow(s, maxDepth) }

// maxDepth limits the depth to which schemas are examined, because schemas of Go types may be
// recursive.
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

// mostOf returns the maximum number of elements in a list or map with values of the schema s.
// besides is the number of additional bytes for each element.
func mostOf(s *schema.Schema, besides uint64) uint64 {
	return (largestRequest - 2) / (leastSize(s) + besides)
}

func bound(n *int64) uint64 { return uint64(max(*n, 0)) } // negative limits count as 0

// mostElements returns the maximum number of items, entries or bytes of a value.
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
	case s.MaxLength != nil: // in characters of up to four bytes
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

// sizes estimates the sizes of variables from their schemas. Objects, map keys, numbers and
// booleans have size 0, as in the reference server, because existing rules were written for its
// limits.
type sizes map[string]*schema.Schema // by variable

// EstimateSize implements cost.Estimator.
func (z sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if e := node.Expr(); len(path) == 0 || e != nil && e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return nil // has(self.a) has the path of a but is a boolean
	}
	s, ok := z[path[0]]
	if !ok { // an item of a computed list, which is no larger than its source
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

// EstimateCallCost implements cost.Estimator. It returns nil because the cost models of the
// functions apply.
func (z sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// multiply returns a*b, or the maximum if the product overflows.
func multiply(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
