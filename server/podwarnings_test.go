package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/servertest"
)

const daemonSetBody = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
	"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestTemplateGenerationOwners: a new template changes the number in a DaemonSet's annotation,
// but only a writer that sends another number owns the annotation.
func TestTemplateGenerationOwners(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/default/daemonsets"
	const template = `{"spec":{"template":{"spec":{"nodeSelector":{"x":"y"}}}}}`
	const annotated = `{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"9"}}}`
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", path+"?fieldManager=creator", daemonSetBody)
	for _, c := range []struct {
		method, endpoint, manager, body, contentType string
		number, owner                                string
	}{
		{"PATCH", "", "scheduler", template, "application/merge-patch+json", "2", "creator"},
		{"PATCH", "", "patcher", annotated, "application/merge-patch+json", "2", "patcher"},
		{"PATCH", "", "applier", `{"apiVersion":"apps/v1","kind":"DaemonSet","spec":{"template":{"spec":{"hostname":"h"}}}}`, applyPatchType, "3", "patcher"},
		{"PATCH", "/status", "controller", annotated, "application/merge-patch+json", "3", "patcher"},
		{"PUT", "", "updater", daemonSetBody, "application/json", "4", "updater"},
	} {
		got := a.must(200, c.method, path+"/d"+c.endpoint+"?fieldManager="+c.manager, c.body, "Content-Type", c.contentType)
		const key = "deprecated.daemonset.template.generation"
		assert.Equal(t, c.number, at(got.body, "metadata", "annotations", key), "%v", c)
		var owners []string
		entries, _ := at(got.body, "metadata", "managedFields").([]any)
		for _, e := range entries {
			if at(e, "fieldsV1", "f:metadata", "f:annotations", "f:"+key) != nil {
				owners = append(owners, text(e, "manager"))
			}
		}
		assert.Equal(t, []string{c.owner}, owners, "%v", c)
	}
	applied := a.must(201, "PATCH", path+"/e?fieldManager=applier", strings.Replace(daemonSetBody, `"d"`, `"e"`, 1), "Content-Type", applyPatchType)
	assert.Equal(t, "1", at(applied.body, "metadata", "annotations", "deprecated.daemonset.template.generation"))
}
