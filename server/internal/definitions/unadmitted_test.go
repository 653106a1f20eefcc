package definitions_test

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
	"orch.io/controlplane/server/internal/apitest"
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
	t.Parallel()
	s := servertest.New(t, refusesDeletions("example.com", "widgets"))
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	apitest.Must(t, s, 201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`))
	code, _ := apitest.Call(t, s, "DELETE", apitest.WidgetsPath+"/w", "")
	require.Equal(t, 403, code)
	apitest.Must(t, s, 200, "DELETE", apitest.WidgetDefinitionPath, "")
	s.Settle()
	apitest.Must(t, s, 404, "GET", apitest.WidgetDefinitionPath, "")
}

// TestEvictionDeletesWithoutAdmission: admission runs for the eviction, not for the deletion of the pod.
func TestEvictionDeletesWithoutAdmission(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, refusesDeletions("", "pods")))
	for _, name := range []string{"pending", "running"} {
		a.Must(201, "POST", apitest.PodsPath, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	}
	apitest.RunPod(a, "bound")
	for _, name := range []string{"pending", "running", "bound"} {
		a.Must(403, "DELETE", apitest.PodsPath+"/"+name, nil)
		a.Must(201, "POST", apitest.PodsPath+"/"+name+"/eviction", `{"metadata":{"name":"`+name+`"}}`)
	}
	a.Must(404, "GET", apitest.PodsPath+"/pending", nil)
	assert.NotEmpty(t, apitest.NestedString(a.Must(200, "GET", apitest.PodsPath+"/bound", nil).Body, "metadata", "deletionTimestamp"))
}

// TestEventsExpireWithoutAdmission: admission does not run for the expiry of an event.
func TestEventsExpireWithoutAdmission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t, refusesDeletions("", "events"))
		a := apitest.InProcess(t, s)
		const events = "/api/v1/namespaces/default/events"
		a.Must(201, "POST", events, `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"}}`)
		a.Must(403, "DELETE", events+"/e", nil)
		time.Sleep(2 * time.Hour)
		s.Settle()
		a.Must(404, "GET", events+"/e", nil)
	})
}

// terminating returns the reason and message of the condition Terminating of a definition.
func terminating(a *apitest.Client, definition string) (reason, message string) {
	list, _ := apitest.Nested(a.Must(200, "GET", definition, nil).Body, "status", "conditions").([]any)
	for _, c := range list {
		if apitest.NestedString(c, "type") == "Terminating" && apitest.NestedString(c, "status") == "True" {
			return apitest.NestedString(c, "reason"), apitest.NestedString(c, "message")
		}
	}
	return "", ""
}

// TestTerminatingConditionNamesRemainingObjects: the Terminating condition of a deleted definition
// has the number of objects that are left and the reason.
func TestTerminatingConditionNamesRemainingObjects(t *testing.T) {
	t.Parallel()
	t.Run("conversion", func(t *testing.T) {
		a, hook, s := barServer(t)
		for _, name := range []string{"a", "b", "c"} {
			a.Must(201, "POST", barPath("v1", ""), bar("v1", name, `{"length":1}`))
		}
		hook.lies(func(map[string]any) string { return "no" })
		storeV2(a)
		a.Must(200, "DELETE", apitest.DefinitionsPath+"/bars.example.com", nil)
		s.Settle()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			reason, message := terminating(a, apitest.DefinitionsPath+"/bars.example.com")
			assert.Equal(c, "InstanceDeletionFailed", reason)
			assert.Regexp(c, `^3 objects of this kind are left: .*conversion webhook`, message)
		}, apitest.Timeout, 10*time.Millisecond)
		hook.lies(nil)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.Equal(c, 404, a.Do("GET", apitest.DefinitionsPath+"/bars.example.com", nil).Code)
		}, apitest.Timeout, 10*time.Millisecond)
	})
	t.Run("finalizers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := servertest.New(t)
			a := apitest.InProcess(t, s)
			a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			for name, finalizers := range map[string]string{"v": `"example.com/b"`, "w": `"example.com/b","example.com/a"`} {
				a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget(name, `{}`))
				a.Must(200, "PATCH", apitest.WidgetsPath+"/"+name, `{"metadata":{"finalizers":[`+finalizers+`]}}`)
			}
			a.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			const cause = "2 objects of this kind are left: the finalizer example.com/a holds 1; the finalizer example.com/b holds 2"
			time.Sleep(time.Second)
			reason, message := terminating(a, apitest.WidgetDefinitionPath)
			assert.Equal(t, []string{"InstanceDeletionInProgress", cause}, []string{reason, message})
			time.Sleep(time.Minute)
			reason, message = terminating(a, apitest.WidgetDefinitionPath)
			assert.Equal(t, []string{"InstanceDeletionFailed", cause}, []string{reason, message})
			for _, name := range []string{"v", "w"} {
				a.Must(200, "PATCH", apitest.WidgetsPath+"/"+name, `{"metadata":{"finalizers":null}}`)
			}
			time.Sleep(time.Second)
			a.Must(404, "GET", apitest.WidgetDefinitionPath, nil)
		})
	})
}

// TestFailedRemovalOfDefinitionIsNotRepeatedAtOnce: if the error of a conversion webhook differs each time, the
// condition that quotes it does not keep the controller busy.
func TestFailedRemovalOfDefinitionIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	a, hook, _ := barServer(t)
	a.Must(201, "POST", barPath("v1", ""), bar("v1", "a", `{"length":1}`))
	var calls atomic.Int64
	hook.lies(func(r map[string]any) string {
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Failure","message":"no %d"}}}`,
			apitest.NestedString(r, "request", "uid"), calls.Add(1))
	})
	storeV2(a)
	a.Must(200, "DELETE", apitest.DefinitionsPath+"/bars.example.com", nil)
	time.Sleep(time.Second)
	require.Less(t, calls.Load(), int64(100), "the controller must pause between attempts")
	hook.lies(nil)
}
