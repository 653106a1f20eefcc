package meta_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestChecksAcceptValidNames(t *testing.T) {
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

// TestChecksReturnKnownMessages: the messages are part of the API, and conformance suites compare them.
func TestChecksReturnKnownMessages(t *testing.T) {
	const (
		label     = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
		subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
		part      = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
		value     = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
	)
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, row := range []struct {
		check func(string) []string
		text  string
		words []string
	}{
		{meta.CheckDNSLabel, "A b", []string{label}},
		{meta.CheckDNSLabel, x(64), []string{"must be no more than 63 characters"}},
		{meta.CheckDNSSubdomain, "a..b", []string{subdomain}},
		{meta.CheckDNSSubdomain, x(254), []string{"must be no more than 253 characters"}},
		{meta.CheckDNS1035Label, "1a", []string{"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"}},
		{meta.CheckQualifiedName, "a b", []string{"name part " + part}},
		{meta.CheckQualifiedName, "", []string{"name part must be non-empty", "name part " + part}},
		{meta.CheckQualifiedName, "/a", []string{"prefix part must be non-empty"}},
		{meta.CheckQualifiedName, "A/a", []string{"prefix part " + subdomain}},
		{meta.CheckQualifiedName, x(254) + "/a", []string{"prefix part must be no more than 253 bytes"}},
		{meta.CheckQualifiedName, "a/" + x(64), []string{"name part must be no more than 63 bytes"}},
		{meta.CheckQualifiedName, "a/b/c", []string{"a valid label key " + part + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"}},
		{meta.CheckLabelValue, "-", []string{value}},
		{meta.CheckLabelValue, x(64), []string{"must be no more than 63 bytes"}},
		{meta.CheckPathSegment, "..", []string{"may not be '..'"}},
		{meta.CheckPathSegment, "a/%", []string{"may not contain '/'", "may not contain '%'"}},
	} {
		require.Equal(t, row.words, row.check(row.text), row.text)
	}
}

func TestMetadataMessages(t *testing.T) {
	for _, row := range [][2]string{
		{`"generation":-1`, `metadata.generation: Invalid value: -1: must be greater than or equal to 0`},
		{`"finalizers":["orphan","foregroundDeletion"]`, `metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`},
		{`"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}]`,
			`metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}: /v1, Kind=Event is disallowed from being an owner`},
		{`"ownerReferences":[{"apiVersion":"a/b/c","kind":"X","name":"n","uid":"u"}]`, `metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>`},
		{`"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"Y","name":"m","uid":"w","controller":true}]`,
			`metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"X","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"Y","name":"m","uid":"w","controller":true}]: ` +
				`Only one reference can have Controller set to true. Found "true" in references for X/n and Y/m`},
	} {
		causes := meta.ValidateMetadata(object(t, `{"metadata":{"name":"a",`+row[0]+`}}`), nil, meta.MetadataRules{})
		require.Len(t, causes, 1, row[0])
		require.Equal(t, row[1], causes[0].Field+": "+causes[0].Message)
	}
}

// TestMetadataViolationsAreBounded: the number of causes is limited for a body with many invalid
// labels.
func TestMetadataViolationsAreBounded(t *testing.T) {
	labels := map[string]any{}
	for i := range 5000 {
		labels[fmt.Sprint("-", i)] = "-"
	}
	o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a", "labels": labels}})
	require.Len(t, meta.ValidateMetadata(o, o, meta.MetadataRules{}), 1000)
}

func object(t *testing.T, text string) *meta.Object {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &tree))
	return meta.NewObject(tree)
}

func fields(causes []meta.StatusCause) []string {
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
		{`"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}]`, "Invalid ownerReferences[0]"},
		{`"name":"a","ownerReferences":[{}]`, "Required ownerReferences[0].apiVersion|Required ownerReferences[0].kind|Required ownerReferences[0].name|Required ownerReferences[0].uid"},
		{`"name":"a","managedFields":[{"operation":"X","fieldsType":"Y","manager":"\u0001"}]`,
			"Invalid managedFields[0].operation|Invalid managedFields[0].fieldsType|Invalid managedFields[0].manager"},
	} {
		obj := object(t, `{"metadata":{"namespace":"ns",`+row.metadata+`}}`)
		got := meta.ValidateMetadata(obj, nil, meta.MetadataRules{Namespaced: true, Finalizers: []string{"kubernetes"}})
		require.Equal(t, row.want, strings.Join(fields(got), "|"), row.metadata)
	}
	obj := object(t, `{"metadata":{"namespace":"ns","name":"a","finalizers":["x"]}}`)
	require.Equal(t, []string{"Forbidden namespace"}, fields(meta.ValidateMetadata(obj, nil, meta.MetadataRules{AnyFinalizer: true})))
	require.Len(t, meta.MetadataWarnings(obj, nil, meta.MetadataRules{AnyFinalizer: true}), 1)
	require.Empty(t, meta.MetadataWarnings(obj, obj, meta.MetadataRules{AnyFinalizer: true}))
}

func TestValidateMetadataOnUpdate(t *testing.T) {
	base := `"name":"a","namespace":"ns","uid":"u","generation":2,"creationTimestamp":"2001-01-01T00:00:00Z"`
	for _, row := range []struct{ old, new, want string }{
		{``, ``, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"finalizers":["x.io/a"]`, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"deletionTimestamp":"2001-01-01T01:00:00+01:00"`, ""},
		{`,"deletionTimestamp":"2001-01-01T00:00:00Z","finalizers":["x.io/a"]`, `,"finalizers":["x.io/a","x.io/b"]`, "Forbidden finalizers"},
		{``, `,"finalizers":["x.io/a"]`, ""},
		{``, `,"uid":"v"`, "Invalid uid"},
		{``, `,"name":"b"`, "Invalid name"},
		{``, `,"generation":1`, "Invalid generation"},
		{``, `,"creationTimestamp":"2002-01-01T00:00:00Z"`, "Invalid creationTimestamp"},
		{``, `,"deletionGracePeriodSeconds":3`, "Invalid deletionGracePeriodSeconds"},
		{``, `,"labels":{"a":"-"}`, "Invalid labels"},
	} {
		got := fields(meta.ValidateMetadata(object(t, `{"metadata":{`+base+row.new+`}}`), object(t, `{"metadata":{`+base+row.old+`}}`), meta.MetadataRules{Namespaced: true}))
		require.Equal(t, row.want, strings.Join(got, "|"), row.new)
	}
	plain := object(t, `{"metadata":{`+base+`,"finalizers":["nodomain"]}}`)
	require.Len(t, meta.ValidateMetadata(plain, nil, meta.MetadataRules{Namespaced: true}), 1)
	require.Empty(t, meta.ValidateMetadata(plain, nil, meta.MetadataRules{Namespaced: true, FreeFinalizers: true}))
	old := object(t, `{"metadata":{`+base+`}}`)
	require.Len(t, meta.ValidateMetadata(plain, old, meta.MetadataRules{Namespaced: true}), 1)
	require.Empty(t, meta.ValidateMetadata(plain, old, meta.MetadataRules{Namespaced: true, FreeFinalizers: true}))
}

// distinct returns the different strings of list, sorted. The recorded causes repeat some, which the server does not.
func distinct(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// TestValidateMetadataMatchesReference compares the causes for changes of metadata with recorded
// ones: the object, the stored object, and the invalid fields with reasons.
func TestValidateMetadataMatchesReference(t *testing.T) {
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
		require.Equal(t, distinct(c.Want), distinct(fields(meta.ValidateMetadata(meta.NewObject(c.Object), old, rules))), "%s", line)
		checked++
	}
	require.Greater(t, checked, 40)
}
