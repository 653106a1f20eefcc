package server_test

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/builtin/storagemigration"
)

// What a reference server answers to discovery, and which columns its tables have. To record
// it anew, start one without definitions of kinds and run
//
//	go test ./server -run TestReferenceDiscovery -reference https://127.0.0.1:6443 -reference-token TOKEN
var (
	reference      = flag.String("reference", "", "`URL` of a kube-apiserver whose answers are recorded or compared")
	referenceToken = flag.String("reference-token", "admin-token", "bearer token of a member of system:masters at -reference")
)

const (
	referenceFile            = "testdata/reference.json"
	referenceDifferencesFile = "testdata/reference-differences.txt"
	aggregatedDiscovery      = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	tableForm                = "application/json;g=meta.k8s.io;v=v1;as=Table"
)

// discoveryRecord is what a server answers: of each path, and of each form of it, the
// document as lines "place: value", and of each resource that can be listed its columns.
type discoveryRecord map[string]map[string]string

// TestReferenceDiscovery fails on a difference from the recorded answers of the reference
// server that is not listed with its reason, and on a listed one that is gone.
func TestReferenceDiscovery(t *testing.T) {
	if *reference != "" {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		record := recordDiscovery(&api{t, *reference, client}, "Authorization", "Bearer "+*referenceToken)
		text, err := json.MarshalIndent(record, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(referenceFile, append(text, '\n'), 0o600))
	}
	text, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	var want discoveryRecord
	require.NoError(t, json.Unmarshal(text, &want))
	s := goldenServer(t, goldenDir(t)+"/users.csv", false, storagemigration.Kinds()...)
	got := recordDiscovery(&api{t, "http://in-process", &http.Client{Transport: s.Transport()}}, "Authorization", "Bearer admin-token")
	var found []difference
	for _, path := range slices.Sorted(maps.Keys(union(want, got))) {
		for _, place := range slices.Sorted(maps.Keys(union(want[path], got[path]))) {
			if a, b := want[path][place], got[path][place]; a != b {
				short := fmt.Sprintf("%s %s: %s", path, place, cmp.Or(b, "none"))
				found = append(found, difference{short, "reference: " + cmp.Or(a, "none")})
			}
		}
	}
	compareDifferences(t, listedDifferences(t, referenceDifferencesFile, func(line string) (string, string) { return "", line })[""], found)
}

func union[V any](a, b map[string]V) map[string]V {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]V{}
	}
	maps.Copy(both, b)
	return both
}

func recordDiscovery(a *api, headers ...string) discoveryRecord {
	a.t.Helper()
	record := discoveryRecord{}
	get := func(path, accept string) map[string]any {
		return a.must(200, "GET", path, nil, append([]string{"Accept", accept}, headers...)...).body
	}
	var versions []string
	for _, path := range []string{"/api", "/apis"} {
		record[path] = documentLines(get(path, "application/json"))
		record["aggregated "+path] = documentLines(get(path, aggregatedDiscovery))
	}
	for _, v := range get("/api", "application/json")["versions"].([]any) {
		versions = append(versions, "/api/"+v.(string))
	}
	for _, g := range get("/apis", "application/json")["groups"].([]any) {
		for _, v := range g.(map[string]any)["versions"].([]any) {
			versions = append(versions, "/apis/"+text(v, "groupVersion"))
		}
	}
	for _, path := range versions {
		list := get(path, "application/json")
		record[path] = documentLines(list)
		for _, r := range list["resources"].([]any) {
			name, verbs := text(r, "name"), fmt.Sprint(at(r, "verbs"))
			if strings.Contains(name, "/") || !strings.Contains(verbs, "list") {
				continue
			}
			var columns []string
			for _, c := range get(path+"/"+name+"?limit=1", tableForm)["columnDefinitions"].([]any) {
				columns = append(columns, fmt.Sprintf("%s %s%s%v", text(c, "name"), text(c, "type"), strings.TrimSuffix(" "+text(c, "format"), " ")+" ", at(c, "priority")))
			}
			record[path+"/"+name] = map[string]string{"columns": strings.Join(columns, ", ")}
		}
	}
	return record
}

// documentLines flattens a discovery document: each item of a list is a line with the fields
// of the item that are no lists of objects. Of groups and versions the order counts.
func documentLines(doc map[string]any) map[string]string {
	lines := map[string]string{}
	var walk func(place string, fields map[string]any)
	walk = func(place string, fields map[string]any) {
		own := map[string]any{}
		for k, v := range fields {
			list, ok := v.([]any)
			if ok = ok && len(list) > 0; ok {
				_, ok = list[0].(map[string]any)
			}
			switch {
			case k == "serverAddressByClientCIDRs" || k == "freshness":
			case !ok:
				own[k] = v
			default:
				var names []string
				for _, x := range list {
					name := cmp.Or(text(x, "metadata", "name"), text(x, "name"), text(x, "resource"), text(x, "subresource"), text(x, "groupVersion"), text(x, "version"), "core")
					names = append(names, name)
					walk(place+name+" ", x.(map[string]any))
				}
				if k == "groups" || k == "items" || k == "versions" {
					own[k] = names
				}
			}
		}
		text, _ := json.Marshal(own)
		lines[strings.TrimSpace(place)] = string(text)
	}
	walk("", doc)
	return lines
}
