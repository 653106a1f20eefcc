package server_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// refusesDeletions refuses to let any object of some resources of a group be deleted.
func refusesDeletions(group string, resources ...string) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Refuses", Rules: []admission.Rule{{Operations: []admission.Operation{admission.Delete}, Groups: []string{group}, Resources: resources}},
			Validate: func(context.Context, *admission.Request) error { return errors.New("no deletions") },
		})
	}
}

// TestDefinitionsAreRemovedWithoutAdmission: the objects of a CustomResourceDefinition go with it,
// even if admission refuses the deletion of each.
func TestDefinitionsAreRemovedWithoutAdmission(t *testing.T) {
	s := servertest.New(t, refusesDeletions("example.com", "widgets"))
	must(t, s, 201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	must(t, s, 201, "POST", definedPath, definedWidget("w", `{}`))
	code, _ := call(t, s, "DELETE", definedPath+"/w", "")
	require.Equal(t, 403, code)
	must(t, s, 200, "DELETE", definedCRD, "")
	s.Settle()
	must(t, s, 404, "GET", definedCRD, "")
}

// TestEvictionsAskNoAdmissionForTheDeletion: admission is asked about the eviction alone.
func TestEvictionsAskNoAdmissionForTheDeletion(t *testing.T) {
	a := inProcess(t, servertest.New(t, refusesDeletions("", "pods")))
	for _, name := range []string{"pending", "running"} {
		a.must(201, "POST", podPath, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	}
	running(a, "bound")
	for _, name := range []string{"pending", "running", "bound"} {
		a.must(403, "DELETE", podPath+"/"+name, nil)
		a.must(201, "POST", podPath+"/"+name+"/eviction", `{"metadata":{"name":"`+name+`"}}`)
	}
	a.must(404, "GET", podPath+"/pending", nil)
	assert.NotEmpty(t, text(a.must(200, "GET", podPath+"/bound", nil).body, "metadata", "deletionTimestamp"))
}

// TestEventsExpireWithoutAdmission: as the expiry of a record, that of an event asks nobody.
func TestEventsExpireWithoutAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t, refusesDeletions("", "events"))
		a := inProcess(t, s)
		const events = "/api/v1/namespaces/default/events"
		a.must(201, "POST", events, `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"}}`)
		a.must(403, "DELETE", events+"/e", nil)
		time.Sleep(2 * time.Hour)
		s.Settle()
		a.must(404, "GET", events+"/e", nil)
	})
}
