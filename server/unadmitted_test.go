package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// terminating returns the reason and the message of the condition Terminating of a definition.
func terminating(a *api, definition string) (reason, message string) {
	list, _ := at(a.must(200, "GET", definition, nil).body, "status", "conditions").([]any)
	for _, c := range list {
		if text(c, "type") == "Terminating" && text(c, "status") == "True" {
			return text(c, "reason"), text(c, "message")
		}
	}
	return "", ""
}

// TestADefinitionSaysWhatItsRemovalWaitsFor: the condition has the number of objects and what
// keeps them.
func TestADefinitionSaysWhatItsRemovalWaitsFor(t *testing.T) {
	t.Run("conversion", func(t *testing.T) {
		a, hook, s := barServer(t)
		for _, name := range []string{"a", "b", "c"} {
			a.must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		}
		hook.lies(func(map[string]any) string { return "no" })
		storeV2(a)
		a.must(200, "DELETE", crdPath+"/bars.example.com", nil)
		s.Settle()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			reason, message := terminating(a, crdPath+"/bars.example.com")
			assert.Equal(c, "InstanceDeletionFailed", reason)
			assert.Regexp(c, `^3 objects of this kind are left: .*conversion webhook`, message)
		}, patience, 10*time.Millisecond)
		hook.lies(nil)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.Equal(c, 404, a.do("GET", crdPath+"/bars.example.com", nil).code)
		}, patience, 10*time.Millisecond)
	})
	t.Run("finalizers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := servertest.New(t)
			a := inProcess(t, s)
			a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			for name, finalizers := range map[string]string{"v": `"example.com/b"`, "w": `"example.com/b","example.com/a"`} {
				a.must(201, "POST", definedPath, definedWidget(name, `{}`))
				a.must(200, "PATCH", definedPath+"/"+name, `{"metadata":{"finalizers":[`+finalizers+`]}}`)
			}
			a.must(200, "DELETE", definedCRD, nil)
			const cause = "2 objects of this kind are left: the finalizer example.com/a holds 1; the finalizer example.com/b holds 2"
			time.Sleep(time.Second)
			reason, message := terminating(a, definedCRD)
			assert.Equal(t, []string{"InstanceDeletionInProgress", cause}, []string{reason, message})
			time.Sleep(time.Minute)
			reason, message = terminating(a, definedCRD)
			assert.Equal(t, []string{"InstanceDeletionFailed", cause}, []string{reason, message})
			for _, name := range []string{"v", "w"} {
				a.must(200, "PATCH", definedPath+"/"+name, `{"metadata":{"finalizers":null}}`)
			}
			time.Sleep(time.Second)
			a.must(404, "GET", definedCRD, nil)
		})
	})
}

// TestFailedRemovalOfADefinitionIsNotRepeatedAtOnce: a conversion webhook whose error differs each time does not keep
// the controller of definitions busy through the condition that quotes the error.
func TestFailedRemovalOfADefinitionIsNotRepeatedAtOnce(t *testing.T) {
	a, hook, _ := barServer(t)
	a.must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	var calls atomic.Int64
	hook.lies(func(r map[string]any) string {
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Failure","message":"no %d"}}}`,
			text(r, "request", "uid"), calls.Add(1))
	})
	storeV2(a)
	a.must(200, "DELETE", crdPath+"/bars.example.com", nil)
	time.Sleep(time.Second)
	require.Less(t, calls.Load(), int64(100), "a second has room for thousands")
	hook.lies(nil)
}
