package meta_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/meta"
)

func TestForms(t *testing.T) {
	for _, row := range []struct {
		check func(string) []string
		good  string
		bad   string
	}{
		{meta.CheckDNSLabel, "a 0 a-b a1 1a " + strings.Repeat("a", 63), "A a.b -a a- a_b é " + strings.Repeat("a", 64)},
		{meta.CheckDNSSubdomain, "a a.b 1.2 a-b.c " + strings.Repeat("a", 253), "A a. .a a..b a.-b a-.b a_b " + strings.Repeat("a", 254)},
		{meta.CheckDNS1035Label, "a a1 a-b", "1a A -a a. " + strings.Repeat("a", 64)},
		{meta.CheckQualifiedName, "a A a.b a_b a-b x.io/a 1 " + strings.Repeat("a", 63), "/a a/ a/b/c UP.io/a -a a- a! é x_y/a " + strings.Repeat("a", 64)},
		{meta.CheckLabelValue, "a A.b_c-d 1 " + strings.Repeat("a", 63), "-v v- a/b " + strings.Repeat("a", 64)},
		{meta.CheckPathSegment, "a A:b system:x a.b", ". .. a/b a%b"},
		{meta.CheckManager, "kubectl my-manager", strings.Repeat("a", 129) + " a\x01"},
	} {
		for _, s := range strings.Fields(row.good) {
			require.Empty(t, row.check(s), s)
		}
		for _, s := range strings.Fields(row.bad) {
			require.NotEmpty(t, row.check(s), s)
		}
	}
	require.Empty(t, meta.CheckLabelValue(""))
	for _, check := range []func(string) []string{meta.CheckDNSLabel, meta.CheckDNSSubdomain, meta.CheckDNS1035Label, meta.CheckQualifiedName} {
		require.NotEmpty(t, check(""))
	}
	name := meta.NameChecker(meta.CheckDNSLabel)
	require.Empty(t, name("a-", true))
	require.NotEmpty(t, name("a-", false))
	require.NotEmpty(t, name("Bad_", true))
}

func object(t *testing.T, text string) *meta.Object {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &tree))
	return meta.NewObject(tree)
}

func fields(causes []meta.Cause) []string {
	out := []string{}
	for _, c := range causes {
		out = append(out, strings.TrimPrefix(string(c.Reason), "FieldValue")+" "+strings.TrimPrefix(c.Field, "metadata."))
	}
	return out
}

func TestValidateMetadataOnCreate(t *testing.T) {
	for _, row := range []struct{ metadata, want string }{
		{`"name":"a"`, ""},
		{`"name":"a","namespace":""`, "Required namespace"},
		{`"name":"a","namespace":"A"`, "Invalid namespace"},
		{`"name":"a","generation":-1`, "Invalid generation"},
		{`"name":"a","finalizers":["orphan","foregroundDeletion"]`, "Invalid finalizers"},
		{`"name":"a","finalizers":["kubernetes"]`, ""},
		{`"name":"a","finalizers":["x"]`, "Invalid finalizers[0]"},
		{`"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]`, "Invalid ownerReferences"},
		{`"name":"a","ownerReferences":[{}]`, "Invalid ownerReferences.apiVersion|Invalid ownerReferences.kind|Invalid ownerReferences.name|Invalid ownerReferences.uid"},
		{`"name":"a","managedFields":[{"operation":"X","fieldsType":"Y","manager":"\u0001"}]`,
			"Invalid managedFields[0].operation|Invalid managedFields[0].fieldsType|Invalid managedFields[0].manager"},
	} {
		obj := object(t, `{"metadata":{"namespace":"ns",`+row.metadata+`}}`)
		got := meta.ValidateMetadata(obj, nil, meta.MetadataRules{Namespaced: true, Finalizers: []string{"kubernetes"}})
		require.Equal(t, row.want, strings.Join(fields(got), "|"), row.metadata)
	}
	obj := object(t, `{"metadata":{"namespace":"ns","name":"a","finalizers":["x"]}}`)
	require.Equal(t, []string{"Forbidden namespace"}, fields(meta.ValidateMetadata(obj, nil, meta.MetadataRules{Custom: true})))
	require.Len(t, meta.MetadataWarnings(obj, nil, meta.MetadataRules{Custom: true}), 1)
	require.Empty(t, meta.MetadataWarnings(obj, obj, meta.MetadataRules{Custom: true}))
}

func TestValidateMetadataOnUpdate(t *testing.T) {
	base := `"name":"a","namespace":"ns","uid":"u","generation":2,"creationTimestamp":"2001-01-01T00:00:00Z"`
	for _, row := range []struct{ old, new, want string }{
		{``, ``, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"finalizers":["x.io/a"]`, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"deletionTimestamp":"2001-01-01T01:00:00+01:00"`, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"finalizers":["x.io/a","x.io/b"]`, "Forbidden finalizers ×2"},
		{``, `,"finalizers":["x.io/a"]`, ""},
		{``, `,"uid":"v"`, "Invalid uid ×2"},
		{``, `,"name":"b"`, "Invalid name ×2"},
		{``, `,"generation":1`, "Invalid generation ×2"},
		{``, `,"creationTimestamp":"2002-01-01T00:00:00Z"`, "Invalid creationTimestamp ×2"},
		{``, `,"deletionGracePeriodSeconds":3`, "Invalid deletionGracePeriodSeconds ×2"},
		{``, `,"labels":{"a":"-"}`, "Invalid labels ×4"},
	} {
		got := fields(meta.ValidateMetadata(object(t, `{"metadata":{`+base+row.new+`}}`), object(t, `{"metadata":{`+base+row.old+`}}`), meta.MetadataRules{Namespaced: true}))
		text := ""
		if len(got) > 0 {
			text = fmt.Sprintf("%s ×%d", got[0], len(got))
		}
		require.Equal(t, row.want, text, row.new)
	}
	bad := object(t, `{"metadata":{`+base+`,"labels":{"a":"-"}}}`)
	for _, row := range []struct {
		rules meta.MetadataRules
		want  int
	}{
		{meta.MetadataRules{}, 4},
		{meta.MetadataRules{Custom: true}, 3},
		{meta.MetadataRules{Passes: []meta.MetadataPass{}}, 2},
		{meta.MetadataRules{Passes: []meta.MetadataPass{meta.PassUpdate}}, 3},
		{meta.MetadataRules{Passes: []meta.MetadataPass{meta.PassKind, meta.PassKind, meta.PassUpdate}}, 5},
	} {
		row.rules.Namespaced = true
		require.Len(t, meta.ValidateMetadata(bad, object(t, `{"metadata":{`+base+`}}`), row.rules), row.want, "%+v", row.rules)
	}
	plain := object(t, `{"metadata":{`+base+`,"finalizers":["nodomain"]}}`)
	require.Len(t, meta.ValidateMetadata(plain, nil, meta.MetadataRules{Namespaced: true}), 1)
	require.Empty(t, meta.ValidateMetadata(plain, nil, meta.MetadataRules{Namespaced: true, Passes: []meta.MetadataPass{}}), "who checks none asks for no domain")
}

// The causes that clients know for changes of metadata: the object as it is
// checked, the stored one before it, and the fields at fault with the reasons.
func TestValidateMetadataAsClientsKnowIt(t *testing.T) {
	text, err := os.ReadFile("testdata/metadata.jsonl")
	require.NoError(t, err)
	checked := 0
	for line := range bytes.Lines(text) {
		var c struct {
			Name        string
			Namespaced  bool
			Object, Old map[string]any
			Want        []string
		}
		require.NoError(t, json.Unmarshal(line, &c))
		rules := meta.MetadataRules{Namespaced: c.Namespaced}
		if !c.Namespaced {
			rules.Name = meta.NameChecker(meta.CheckDNSLabel)
		}
		var old *meta.Object
		if c.Old != nil {
			old = meta.NewObject(c.Old)
		}
		require.ElementsMatch(t, c.Want, fields(meta.ValidateMetadata(meta.NewObject(c.Object), old, rules)), "%s", line)
		checked++
	}
	require.Greater(t, checked, 40)
}
