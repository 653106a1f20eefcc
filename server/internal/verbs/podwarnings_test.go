package verbs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const daemonSetBody = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
	"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestTemplateGenerationOwners: a new template changes the number in an annotation of a DaemonSet, but only a manager
// that sends another number owns the annotation.
func TestTemplateGenerationOwners(t *testing.T) {
	t.Parallel()
	const path = "/apis/apps/v1/namespaces/default/daemonsets"
	const template = `{"spec":{"template":{"spec":{"nodeSelector":{"x":"y"}}}}}`
	const annotated = `{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"9"}}}`
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", path+"?fieldManager=creator", daemonSetBody)
	for _, c := range []struct {
		method, endpoint, manager, body, contentType string
		number, owner                                string
	}{
		{"PATCH", "", "scheduler", template, "application/merge-patch+json", "2", "creator"},
		{"PATCH", "", "patcher", annotated, "application/merge-patch+json", "2", "patcher"},
		{"PATCH", "", "applier", `{"apiVersion":"apps/v1","kind":"DaemonSet","spec":{"template":{"spec":{"hostname":"h"}}}}`, apitest.ApplyPatch, "3", "patcher"},
		{"PATCH", "/status", "controller", annotated, "application/merge-patch+json", "3", "patcher"},
		{"PUT", "", "updater", daemonSetBody, "application/json", "4", "updater"},
	} {
		got := a.Must(200, c.method, path+"/d"+c.endpoint+"?fieldManager="+c.manager, c.body, "Content-Type", c.contentType)
		const key = "deprecated.daemonset.template.generation"
		assert.Equal(t, c.number, apitest.Nested(got.Body, "metadata", "annotations", key), "%v", c)
		var owners []string
		entries, _ := apitest.Nested(got.Body, "metadata", "managedFields").([]any)
		for _, e := range entries {
			if apitest.Nested(e, "fieldsV1", "f:metadata", "f:annotations", "f:"+key) != nil {
				owners = append(owners, apitest.NestedString(e, "manager"))
			}
		}
		assert.Equal(t, []string{c.owner}, owners, "%v", c)
	}
	applied := a.Must(201, "PATCH", path+"/e?fieldManager=applier", strings.Replace(daemonSetBody, `"d"`, `"e"`, 1), "Content-Type", apitest.ApplyPatch)
	assert.Equal(t, "1", apitest.Nested(applied.Body, "metadata", "annotations", "deprecated.daemonset.template.generation"))
}
