package definitions_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestAutoscalerGeneration: the generation changes only with the spec, as in release 1.37.
func TestAutoscalerGeneration(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	const path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	generation := func(r apitest.Response) any { return apitest.Nested(r.Body, "metadata", "generation") }
	assert.EqualValues(t, 1, generation(a.Must(201, "POST", path, `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`)))
	assert.EqualValues(t, 2, generation(a.Must(200, "PATCH", path+"/h", `{"spec":{"maxReplicas":4}}`)))
	assert.EqualValues(t, 2, generation(a.Must(200, "PATCH", path+"/h", `{"metadata":{"labels":{"a":"b"}}}`)))
	assert.EqualValues(t, 2, generation(a.Must(200, "PATCH", path+"/h/status", `{"status":{"currentReplicas":4,"desiredReplicas":1}}`)))
	assert.EqualValues(t, 2, generation(a.Must(200, "GET", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h", nil)))
}

// TestDefinitionsHaveReferenceColumns: the Table of CustomResourceDefinitions has the columns of
// the reference, including those of priority 1.
func TestDefinitionsHaveReferenceColumns(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	table := a.Must(200, "GET", apitest.WidgetDefinitionPath, nil, "Accept", apitest.TableMediaType).Body
	row := table["rows"].([]any)[0].(map[string]any)["cells"].([]any)
	assert.Len(t, row, 8)
	assert.Equal(t, []any{"widgets.example.com", "Namespaced", "v1(storage)"}, row[:3])
	assert.Equal(t, []any{"example.com", "Widget", ""}, row[4:7])
	assert.IsType(t, true, row[7])
}
