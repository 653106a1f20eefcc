package schema

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

type widget struct {
	Port     int32               `json:"port" schema:"range=1|65535"`
	Size     *int32              `json:"size,omitempty" schema:"min=0"`
	Policy   *string             `json:"policy,omitempty" schema:"enum=Always|Never"`
	Name     string              `json:"name" schema:"required,format=dns-label"`
	Host     string              `json:"host,omitempty" schema:"format=dns-subdomain"`
	Address  string              `json:"address,omitempty" schema:"format=ip"`
	Networks []string            `json:"networks,omitempty" schema:"items.format=cidr"`
	Data     map[string]string   `json:"data,omitempty" schema:"keyFormat=config-key"`
	Fixed    string              `json:"fixed,omitempty" schema:"immutable"`
	Parts    []widgetPart        `json:"parts,omitempty" schema:"listType=map,listMapKeys=name"`
	Again    []widgetPart        `json:"again,omitempty" schema:"listType=map,listMapKeys=name,repeats"`
	Loose    *widgetPart         `json:"loose,omitempty" schema:"unchecked"`
	Target   *meta.IntOrString   `json:"target,omitempty" schema:"format=port"`
	Share    *meta.IntOrString   `json:"share,omitempty" schema:"format=int-or-percent"`
	Labels   map[string]string   `json:"labels,omitempty" schema:"format=labels"`
	Selector *meta.LabelSelector `json:"selector,omitempty" schema:"format=label-selector"`
	Path     string              `json:"path,omitempty" schema:"format=file-path"`
	Signer   string              `json:"signer,omitempty" schema:"format=signer-name"`
	Kept     []widgetPart        `json:"kept,omitempty" schema:"ratcheting"`
	Ref      *widgetRef          `json:"ref,omitempty" schema:"name.required"`
	Other    *widgetRef          `json:"other,omitempty"`
	Inner    *widgetInner        `json:"inner,omitempty"`
}

type widgetPart struct {
	Name string `json:"name" schema:"required"`
}

type widgetRef struct {
	Name string `json:"name,omitempty"`
}

type widgetInner struct {
	widgetRef `json:",inline" schema:"name.required"`
}

// TestMessagesOfGoKinds compares the causes for kinds from Go with the expected messages.
func TestMessagesOfGoKinds(t *testing.T) {
	s, err := Go(reflect.TypeFor[widget](), names.Kubernetes)
	require.NoError(t, err)
	old := tree(t, `{"name":"a","port":1,"fixed":"x","kept":[{"name":""}]}`)
	for body, want := range map[string][]string{
		`{"fixed":"x"}`:             {"Invalid port: Invalid value: 0: must be between 1 and 65535, inclusive", "Required name: Required value"},
		`{"fixed":"x","port":1}`:    {"Required name: Required value"},
		also(`"size":-1`):           {"Invalid size: Invalid value: -1: must be greater than or equal to 0"},
		also(`"policy":""`):         {`NotSupported policy: Unsupported value: "": supported values: "Always", "Never"`},
		also(`"policy":"Always"`):   {},
		also(`"host":"a.b"`):        {},
		also(`"address":"1.2"`):     {`Invalid address: Invalid value: "1.2": must be a valid IP address`},
		also(`"networks":["::/0"]`): {},
		also(`"networks":["::"]`):   {`Invalid networks[0]: Invalid value: "::": must be a valid CIDR value`},
		also(`"data":{"b":"","..":"","a/":""}`): {
			`Invalid data[..]: Invalid value: "..": must not be '..'`,
			`Invalid data[a/]: Invalid value: "a/": ` + reasonOf("config-key", "a/"),
		},
		`{"name":"a","port":1,"fixed":"y"}`:         {`Invalid fixed: Invalid value: "y": field is immutable`},
		`{"name":"a","port":1}`:                     {`Invalid fixed: Invalid value: null: field is immutable`},
		also(`"parts":[{"name":"x"},{}]`):           {"Required parts[1].name: Required value"},
		also(`"parts":[{"name":"x"},{"name":"x"}]`): {`Duplicate parts[1]: Duplicate value: {"name":"x"}`},
		also(`"again":[{"name":"x"},{"name":"x"}]`): {},
		also(`"loose":{}`):                          {},
		also(`"target":80,"share":-1`):              {"Invalid share: Invalid value: -1: must be greater than or equal to 0"},
		also(`"target":-1,"share":"1%"`):            {"Invalid target: Invalid value: -1: must be between 1 and 65535, inclusive"},
		also(`"target":"0","share":"x%"`): {
			`Invalid target: Invalid value: "0": must contain at least one letter (a-z)`,
			`Invalid share: Invalid value: "x%": must be an integer or a percentage (such as '1%' or '93%')`,
		},
		also(`"labels":{"-":"","a":"b c","d":"e"}`): {
			`Invalid labels: Invalid value: "-": ` + reasonOf("qualified-name", "-"), `Invalid labels: Invalid value: "b c": ` + reasonOf("label-value", "b c"),
		},
		also(`"selector":{"matchLabels":{"-":""},"matchExpressions":[{"key":"a","operator":"In"},{"key":"a","operator":"Is"}]}`): {
			`Invalid selector.matchLabels: Invalid value: "-": ` + reasonOf("qualified-name", "-"),
			"Required selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			`Invalid selector.matchExpressions[1].operator: Invalid value: "Is": not a valid selector operator`,
		},
		also(`"path":"a/../b"`):  {`Invalid path: Invalid value: "a/../b": must not contain '..'`},
		also(`"path":"..a"`):     {`Invalid path: Invalid value: "..a": must not start with '..'`},
		also(`"path":"/a..b"`):   {`Invalid path: Invalid value: "/a..b": must be a relative path`},
		also(`"signer":"a.b/c"`): {},
		also(`"signer":"b/c"`):   {`Invalid signer: Invalid value: "b": should be a domain with at least two segments separated by dots`},
		also(`"kept":[{}]`):      {},
		also(`"kept":[{},{}]`):   {"Required kept[0].name: Required value", "Required kept[1].name: Required value"},
		also(`"ref":{"name":"a"},"other":{},"inner":{"name":"a"}`): {},
		also(`"ref":{},"inner":{}`):                                {"Required ref.name: Required value", "Required inner.name: Required value"},
		`{"name":"A_","port":1,"fixed":"x"}`:                       {`Invalid name: Invalid value: "A_": ` + reasonOf("dns-label", "A_")},
	} {
		obj := tree(t, body)
		_, faults := s.Normalize(obj)
		require.Empty(t, faults, body)
		got := []string{}
		for _, c := range s.Validate(obj, old) {
			got = append(got, string(c.Reason[len("FieldValue"):])+" "+c.Field+": "+c.Message)
		}
		require.Equal(t, want, got, body)
	}
}

func also(fields string) string { return `{"name":"a","port":1,"fixed":"x",` + fields + `}` }

func reasonOf(format, text string) string { return fieldFormat(format)(text)[0] }

func TestInFieldOrderMergesCauses(t *testing.T) {
	s, err := Go(reflect.TypeFor[widget](), names.Kubernetes)
	require.NoError(t, err)
	causes := func(fields ...string) (out []meta.StatusCause) {
		for _, f := range fields {
			out = append(out, meta.StatusCause{Field: f})
		}
		return out
	}
	for _, c := range []struct{ schema, code, want []meta.StatusCause }{
		{causes("port"), nil, causes("port")},
		{nil, causes("port"), causes("port")},
		{causes("port", "parts[1].name", "parts[10].name", "again[0]"), causes("size", "parts[9]", "parts[9].name", "parts"),
			causes("port", "size", "parts[1].name", "parts[9]", "parts[9].name", "parts[10].name", "parts", "again[0]")},
		{causes("name", "host"), causes("loose", "name"), causes("name", "host", "loose", "name")},
		{causes("data[a]", "data[c]"), causes("data[b]", "data[c]"), causes("data[a]", "data[b]", "data[c]", "data[c]")},
		{causes("port"), causes("nosuch", "Port[0]"), causes("nosuch", "Port[0]", "port")},
	} {
		require.Equal(t, c.want, s.InFieldOrder(c.schema, c.code))
	}
}

// TestTagReplacesViolationText: a tag can replace the text of a violation.
func TestTagReplacesViolationText(t *testing.T) {
	type gadget struct {
		Size  int      `json:"size" schema:"min=1,max=9,reason.min=must not be empty\\, ever"`
		Names []string `json:"names" schema:"required,reason.required=name one,items.pattern=^a,items.reason.pattern=must begin with a"`
		Parts []string `json:"parts" schema:"required,optional,reason.required=name a part"`
	}
	s, err := Go(reflect.TypeFor[gadget](), names.Kubernetes)
	require.NoError(t, err)
	for body, want := range map[string][]string{
		`{"size":0}`: {"size Invalid value: 0: must not be empty, ever", "names Required value: name one", "parts Required value: name a part"},
		`{"size":10,"names":["b"],"parts":["a"]}`: {"size Invalid value: 10: must be less than or equal to 9", `names[0] Invalid value: "b": must begin with a`},
	} {
		obj := tree(t, body)
		s.Normalize(obj)
		got := []string{}
		for _, c := range s.Validate(obj, nil) {
			got = append(got, c.Field+" "+c.Message)
		}
		require.Equal(t, want, got, body)
	}
	type faulty struct {
		A int    `json:"a" schema:"reason.min=x"`
		B int    `json:"b" schema:"min=1,reason.min"`
		C string `json:"c" schema:"format=ip,reason.format=x"`
	}
	_, err = Go(reflect.TypeFor[faulty](), names.Kubernetes)
	for _, text := range []string{"field A: tag schema, reason.min: the tag has no min", "field B: tag schema, reason.min: reason needs a text", "field C: tag schema, reason.format: reason needs a text"} {
		require.ErrorContains(t, err, text)
	}
}
