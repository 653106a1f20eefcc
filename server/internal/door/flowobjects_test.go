package door_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const (
	flowSchemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	flowLevels  = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
)

// TestFlowControlObjects checks that the objects of flow control exist from the start, that changes
// take effect at once, and that mandatory objects are recreated.
func TestFlowControlObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := apitest.InProcess(t, s)
		flow := func() string {
			return a.Do("GET", apitest.ConfigMapsPath, nil).Header.Get("X-Kubernetes-PF-FlowSchema-UID")
		}
		uid := func(path string) string { return meta.NewObject(a.Must(200, "GET", path, nil).Body).UID() }
		s.Settle()
		assert.Len(t, a.Must(200, "GET", flowLevels, nil).Body["items"], 8)
		assert.Len(t, a.Must(200, "GET", flowSchemas, nil).Body["items"], 11)
		assert.Equal(t, uid(flowSchemas+"/global-default"), flow())
		condition := func(name string) string {
			return meta.NewObject(a.Must(200, "GET", flowSchemas+"/"+name, nil).Body).Objects("status", "conditions")[0].String("status")
		}
		assert.Equal(t, "False", condition("probes"))

		a.Must(201, "POST", flowSchemas, `{"metadata":{"name":"early"},"spec":{"priorityLevelConfiguration":{"name":"own"},"matchingPrecedence":2,"rules":[
			{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}]}]}}`)
		s.Settle()
		assert.Equal(t, "True", condition("early"))
		assert.Equal(t, uid(flowSchemas+"/global-default"), flow())
		a.Must(201, "POST", flowLevels, `{"metadata":{"name":"own"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"queues":33,"handSize":11,"queueLengthLimit":1000000}}}}}`)
		s.Settle()
		assert.Equal(t, "False", condition("early"))
		assert.Equal(t, uid(flowSchemas+"/early"), flow())

		before := uid(flowSchemas + "/exempt")
		a.Must(200, "DELETE", flowSchemas+"/exempt", nil)
		a.Must(200, "DELETE", flowLevels+"/catch-all", nil)
		a.Must(200, "DELETE", flowSchemas+"/probes", nil)
		s.Settle()
		assert.NotEqual(t, before, uid(flowSchemas+"/exempt"))
		a.Must(200, "GET", flowLevels+"/catch-all", nil)
		a.Must(404, "GET", flowSchemas+"/probes", nil)
	})
}
