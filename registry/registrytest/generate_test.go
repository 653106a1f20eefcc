package registrytest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// rules has a field for each schema rule about a single value.
type rules struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Enum      string              `json:"enum,omitempty" schema:"enum=a|b"`
	Numbers   int                 `json:"numbers,omitempty" schema:"enum=3|5"`
	Pattern   string              `json:"pattern,omitempty" schema:"pattern=^v[1-9][0-9]*(alpha|beta)?[^a-z]\\.$"`
	Long      string              `json:"long,omitempty" schema:"pattern=^[a-z]([-a-z0-9]*[a-z0-9])?$,minLength=40,maxLength=63"`
	Inside    string              `json:"inside,omitempty" schema:"pattern=\\bx\\b"`
	Fold      string              `json:"fold,omitempty" schema:"pattern=(?i)^abc{2\\,4}.?$"`
	Short     string              `json:"short,omitempty" schema:"maxLength=2"`
	Exact     string              `json:"exact,omitempty" schema:"minLength=12,maxLength=12"`
	Required  string              `json:"required" schema:"required"`
	Count     int32               `json:"count" schema:"required,min=0,max=1"`
	Range     int32               `json:"range,omitempty" schema:"range=1|65535"`
	Inner     int64               `json:"inner,omitempty" schema:"exclusiveMin=4,exclusiveMax=7"`
	Below     int64               `json:"below,omitempty" schema:"max=-5"`
	Multiple  int64               `json:"multiple,omitempty" schema:"min=1,multipleOf=7"`
	Fraction  float64             `json:"fraction,omitempty" schema:"min=0,max=1,multipleOf=0.5"`
	Open      float64             `json:"open,omitempty" schema:"exclusiveMin=0,max=1"`
	Byte      int8                `json:"byte,omitempty"`
	Unsigned  uint8               `json:"unsigned,omitempty"`
	Natural   uint64              `json:"natural,omitempty"`
	Items     []string            `json:"items,omitempty" schema:"minItems=5,maxItems=6,uniqueItems,items.enum=a|b|c|d|e|f"`
	Set       []string            `json:"set,omitempty" schema:"listType=set,minItems=2"`
	Needed    []string            `json:"needed" schema:"required"`
	Pairs     map[string]string   `json:"pairs,omitempty" schema:"minProperties=3,maxProperties=4,keyFormat=config-key"`
	Labels    map[string]string   `json:"labels,omitempty" schema:"format=labels"`
	Selector  *meta.LabelSelector `json:"selector,omitempty" schema:"format=label-selector"`
	Port      meta.IntOrString    `json:"port,omitzero" schema:"format=port"`
	Percent   meta.IntOrString    `json:"percent,omitzero" schema:"format=int-or-percent"`
	Quantity  meta.Quantity       `json:"quantity,omitzero"`
	Duration  meta.Duration       `json:"duration,omitzero"`
	Label     string              `json:"label,omitempty" schema:"format=dns-label"`
	Service   string              `json:"service,omitempty" schema:"format=dns-1035-label"`
	Domain    string              `json:"domain,omitempty" schema:"format=dns-subdomain"`
	Qualified string              `json:"qualified,omitempty" schema:"format=qualified-name"`
	Value     string              `json:"value,omitempty" schema:"format=label-value"`
	Segment   string              `json:"segment,omitempty" schema:"format=path-segment"`
	PortName  string              `json:"portName,omitempty" schema:"format=port-name"`
	Env       string              `json:"env,omitempty" schema:"format=env-name"`
	Header    string              `json:"header,omitempty" schema:"format=header-name"`
	Sysctl    string              `json:"sysctl,omitempty" schema:"format=sysctl-name"`
	Driver    string              `json:"driver,omitempty" schema:"format=csi-driver"`
	Signer    string              `json:"signer,omitempty" schema:"format=signer-name"`
	File      string              `json:"file,omitempty" schema:"format=file-path"`
	IP        string              `json:"ip,omitempty" schema:"format=ip"`
	IPv4      string              `json:"ipv4,omitempty" schema:"format=ipv4"`
	IPv6      string              `json:"ipv6,omitempty" schema:"format=ipv6"`
	CIDR      string              `json:"cidr,omitempty" schema:"format=cidr"`
	Date      string              `json:"date,omitempty" schema:"format=date"`
	Time      string              `json:"time,omitempty" schema:"format=date-time"`
	For       string              `json:"for,omitempty" schema:"format=duration"`
	Bytes     string              `json:"bytes,omitempty" schema:"format=byte"`
	URI       string              `json:"uri,omitempty" schema:"format=uri"`
	Mail      string              `json:"mail,omitempty" schema:"format=email"`
	Host      string              `json:"host,omitempty" schema:"format=hostname"`
	MAC       string              `json:"mac,omitempty" schema:"format=mac"`
	UUID      string              `json:"uuid,omitempty" schema:"format=uuid"`
	UUID3     string              `json:"uuid3,omitempty" schema:"format=uuid3"`
	UUID4     string              `json:"uuid4,omitempty" schema:"format=uuid4"`
	UUID5     string              `json:"uuid5,omitempty" schema:"format=uuid5"`
	Hex       string              `json:"hex,omitempty" schema:"format=hexcolor"`
	RGB       string              `json:"rgb,omitempty" schema:"format=rgbcolor"`
	SSN       string              `json:"ssn,omitempty" schema:"format=ssn"`
	ID        string              `json:"id,omitempty" schema:"format=bsonobjectid"`
	ISBN      string              `json:"isbn,omitempty" schema:"format=isbn"`
	ISBN10    string              `json:"isbn10,omitempty" schema:"format=isbn10"`
	ISBN13    string              `json:"isbn13,omitempty" schema:"format=isbn13"`
	Card      string              `json:"card,omitempty" schema:"format=creditcard"`
}

// TestMadeObjectsSatisfySchema checks that the objects that are made satisfy the rules of tags and
// definitions about single values.
func TestMadeObjectsSatisfySchema(t *testing.T) {
	kinds := append(builtin.Kinds(), registry.Of(registry.Definition[rules]{Group: "example.com", Version: "v1", Kind: "Rule"}))
	for _, k := range kinds {
		typ, err := resource.Compile(k, names.Orch)
		require.NoError(t, err)
		for _, v := range typ.Versions {
			if v.Schema() == nil {
				continue
			}
			reported := map[string]bool{}
			for seed := range uint64(30) {
				obj, err := (&maker{}).object(v, seed)
				require.NoError(t, err, "%s %s", k.Kind, v.Name)
				for _, c := range v.Schema().Validate(obj.Tree(), nil) {
					if !reported[c.Message] {
						reported[c.Message] = true
						t.Errorf("%s %s, seed %d: %s: %s", k.Kind, v.Name, seed, c.Field, c.Message)
					}
				}
			}
		}
	}
}

// TestImpossibleValueNamesField checks that the error for a value that cannot be made names the
// field.
func TestImpossibleValueNamesField(t *testing.T) {
	type impossible struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Text string `json:"text" schema:"pattern=a\\bb"`
		} `json:"spec"`
	}
	k := registry.Of(registry.Definition[impossible]{Group: "example.com", Version: "v1", Kind: "Impossible"})
	typ, err := resource.Compile(k, names.Orch)
	require.NoError(t, err)
	_, err = (&maker{}).object(typ.Hub, 0)
	assert.ErrorContains(t, err, `["spec" "text"]: found no text of the required length with the pattern "a\\bb"`)
}
