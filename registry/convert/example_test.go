package convert_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/convert"
)

const scaler = `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: web
spec:
  maxReplicas: 3
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
  targetCPUUtilizationPercentage: 50
`

// Manifests converts a manifest of an older version to a newer version.
func ExampleConverter_Manifests() {
	c, err := convert.New(names.Kubernetes, builtin.Kinds()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	newer, warnings, err := c.Manifests(context.Background(), []byte(scaler), "autoscaling/v2")
	fmt.Println(string(newer), warnings, err)
	// Output:
	// apiVersion: autoscaling/v2
	// kind: HorizontalPodAutoscaler
	// metadata:
	//   name: web
	// spec:
	//   maxReplicas: 3
	//   metrics:
	//   - resource:
	//       name: cpu
	//       target:
	//         averageUtilization: 50
	//         type: Utilization
	//     type: Resource
	//   scaleTargetRef:
	//     apiVersion: apps/v1
	//     kind: Deployment
	//     name: web
	//  [] <nil>
}

// Object returns an error if the kind does not have the version.
func ExampleConverter_Object() {
	c, err := convert.New(names.Orch, builtin.Kinds()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
	_, err = c.Object(context.Background(), pod, "autoscaling/v2")
	fmt.Println(errors.Is(err, convert.ErrVersion), err)
	// Output: true unknown version: Pod of v1 has no version autoscaling/v2
}
