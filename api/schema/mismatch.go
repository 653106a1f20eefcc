package schema

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/meta"
)

// mismatch adds the cause for a value v that cannot become a value of s, with the message of
// encoding/json that clients know from the reference server.
func (c *normalizer) mismatch(v any, s *Schema) {
	c.misfit = true
	if len(c.faults) >= maxReported {
		return
	}
	into := "value"
	if fields := c.path[c.above:].fields(); fields != "" && c.within != nil {
		into = "struct field " + goName(c.within) + "." + fields
	}
	text := fmt.Sprintf("json: cannot unmarshal %s into Go %s of type %s", decoded(v, s), into, goType(s))
	c.faults = append(c.faults, meta.StatusCause{Reason: meta.CauseTypeInvalid, Field: c.path.String(), Message: text})
}

// fields returns the names of the fields on the path, without keys and indexes.
func (p path) fields() string {
	var names []string
	for _, s := range p {
		if s.index == -1 {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ".")
}

// decoded describes the value v as encoding/json does. It shows a number only if s expects a
// number that v is out of range for.
func decoded(v any, s *Schema) string {
	switch v.(type) {
	case int64, float64:
		if s.Type == Integer || s.Type == Number || s.Wire == IntOrString {
			return "number " + show(v)
		}
		return "number"
	case bool:
		return "bool"
	}
	return jsonType(v)
}

// goType returns the Go type of values of s.
func goType(s *Schema) string {
	switch s.Wire {
	case Time, MicroTime, Duration, Quantity:
		return "string"
	case IntOrString:
		return "int32"
	case Bytes:
		return "[]uint8"
	}
	switch {
	case s.Struct != nil:
		return "v1." + goName(s.Struct)
	case s.Values != nil:
		return "map[string]" + goType(s.Values)
	case s.Items != nil:
		return "[]" + goType(s.Items)
	}
	switch s.Type {
	case Boolean:
		return "bool"
	case String:
		return "string"
	case Number:
		return "float64"
	case Integer:
		if s.Format == "" {
			return "int64"
		}
		return s.Format
	}
	return "map[string]interface {}"
}

// goName returns the name of the struct's Go type as the reference server has it.
func goName(s *Struct) string {
	if i := strings.LastIndexByte(s.Name, '.'); i >= 0 || s.Go == nil {
		return s.Name[i+1:]
	}
	return s.Go.Name()
}
