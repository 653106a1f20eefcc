package proxy

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// connectOptions returns the options object of a connection. Each field of the kind that is a scalar or a list of
// scalars is read from the query parameters of that name.
func connectOptions(q url.Values, v *resource.Version) (*meta.Object, error) {
	options := meta.NewObject(map[string]any{})
	options.SetGVK(v.GVK())
	for _, f := range v.Schema().Struct.Fields {
		texts := q[f.Name]
		if len(texts) == 0 || f.Name == "apiVersion" || f.Name == "kind" {
			continue
		}
		value, err := optionValue(texts, f.Schema)
		if err != nil {
			return nil, meta.BadRequest("%v", err)
		}
		if value != nil {
			options.Set(value, f.Name)
		}
	}
	if _, faults := v.Normalize(options); len(faults) > 0 {
		return nil, v.DecodeError(faults)
	}
	return options, nil
}

// optionValue returns the value of a field from the query parameters of its name, or nil if the field has another
// type.
func optionValue(texts []string, s *schema.Schema) (any, error) {
	switch s.Type {
	case schema.String:
		return texts[0], nil
	case schema.Boolean:
		return texts[0] != "0" && !strings.EqualFold(texts[0], "false"), nil
	case schema.Integer:
		return strconv.ParseInt(texts[0], 10, 64)
	case schema.Array:
		if s.Items.Type == schema.Integer { // a parameter may have several numbers, separated by commas
			texts = strings.Split(strings.Join(texts, ","), ",")
		}
		list := make([]any, 0, len(texts))
		for text := range slices.Values(texts) {
			value, err := optionValue([]string{text}, s.Items)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return nil, nil
}
