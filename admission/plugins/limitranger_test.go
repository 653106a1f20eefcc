package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestLimitRanger checks that defaults are filled in, and that containers, pods and claims outside the bounds
// are refused unless they are terminating.
func TestLimitRanger(t *testing.T) {
	pod := func(name, resources string) string {
		return `{metadata: {name: ` + name + `}, spec: {containers: [{name: c, image: i, resources: {` + resources + `}}]}}`
	}
	claim := func(name, size string) string {
		return `{metadata: {name: ` + name + `}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + size + `}}}}`
	}
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST pods", body: pod("free", ``), want: `201 {spec: {containers: [{resources: {}}]}}`},
		step{do: "POST limitranges", body: `{metadata: {name: l}, spec: {limits: [
			{type: Container, default: {cpu: 500m, memory: 128Mi}, defaultRequest: {cpu: 200m, memory: 64Mi}, min: {cpu: 100m}, max: {cpu: "1", memory: 1Gi}, maxLimitRequestRatio: {memory: 4}},
			{type: Pod, max: {cpu: "2"}},
			{type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 2Gi}}]}}`, want: `201`},
		step{do: "PATCH pods/free", body: `{metadata: {labels: {a: b}}}`, want: `200`},
		step{do: "POST pods", body: pod("a", ``), want: `201 {
			metadata: {annotations: {kubernetes.io/limit-ranger: "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"}},
			spec: {containers: [{resources: {limits: {cpu: 500m, memory: 128Mi}, requests: {cpu: 200m, memory: 64Mi}}}]}}`},
		step{do: "POST pods", body: `{metadata: {name: i}, spec: {initContainers: [{name: i, image: i}],
			containers: [{name: c, image: i, resources: {limits: {cpu: 500m, memory: 1Mi}, requests: {cpu: 100m, memory: 1Mi}}}]}}`,
			want: `201 {metadata: {annotations: {kubernetes.io/limit-ranger: "LimitRanger plugin set: cpu, memory request for init container i; cpu, memory limit for init container i"}},
				spec: {initContainers: [{resources: {limits: {cpu: 500m, memory: 128Mi}, requests: {cpu: 200m, memory: 64Mi}}}]}}`},
		step{do: "POST pods", body: `{metadata: {name: s}, spec: {initContainers: [{name: i, image: i, restartPolicy: Always, resources: {limits: {cpu: 1}}}, {name: j, image: i, resources: {limits: {cpu: 1}}}],
			containers: [{name: c, image: i, resources: {limits: {cpu: 1100m}}}]}}`,
			want: `403 [maximum cpu usage per Container is 1, but limit is 1100m, maximum cpu usage per Pod is 2, but limit is 2100m]`},
		step{do: "POST pods", body: pod("b", `limits: {cpu: 2}`), want: `403 maximum cpu usage per Container is 1, but limit is 2`},
		step{do: "POST pods", body: pod("b", `requests: {cpu: 50m}`), want: `403 minimum cpu usage per Container is 100m, but request is 50m`},
		step{do: "POST pods", body: pod("b", `requests: {cpu: 600m}`), want: `422 must be less than or equal to cpu limit of 500m`},
		step{do: "POST pods", body: pod("b", `requests: {memory: 10Mi}`), want: `403 memory max limit to request ratio per Container is 4, but the limit is 128Mi for a request of 10Mi`},
		step{do: "POST pods", body: pod("b", `limits: {cpu: 2, memory: 2Gi}, requests: {cpu: 50m, memory: 1Gi}`),
			want: `403 [minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]`},
		step{do: "POST pods", body: `{metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1}}}, {name: d, image: i, resources: {limits: {cpu: 1}}}, {name: e, image: i}]}}`,
			want: `403 maximum cpu usage per Pod is 2, but limit is 2500m`},
		step{do: "PATCH pods/a/resize", body: `{spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: 128Mi}, requests: {cpu: 200m, memory: 64Mi}}}]}}`,
			want: `403 maximum cpu usage per Container is 1, but limit is 2`},
		step{do: "POST persistentvolumeclaims", body: claim("x", "500Mi"), want: `403 minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi`},
		step{do: "POST persistentvolumeclaims", body: claim("x", "3Gi"), want: `403 maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi`},
		step{do: "POST persistentvolumeclaims", body: claim("x", "1Gi"), want: `201`},
		step{do: "PATCH limitranges/l", body: `{spec: {limits: [{type: PersistentVolumeClaim, min: {storage: 2Gi}}]}}`, want: `200`},
		step{do: "PATCH persistentvolumeclaims/x", body: `{metadata: {labels: {a: b}}}`, want: `403 minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi`},
		step{do: "PATCH persistentvolumeclaims/x", body: `{metadata: {finalizers: [a.b/c]}}`, want: `403 minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi`},
		step{do: "DELETE persistentvolumeclaims/x", want: `200`},
		step{do: "POST replicationcontrollers", body: `{metadata: {name: r}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 5}}}]}}}}`, want: `201`},
	)
}
