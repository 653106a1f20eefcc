package apiserver

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/catalog.yaml
var catalog string

// TestKubectlCatalog shows one object of each built-in kind with every kubectl command that shows
// objects, and then deletes the objects of the namespace. It fails if the catalog has no object of a
// kind.
func TestKubectlCatalog(t *testing.T) {
	k := newKubectl(t)
	k.put("catalog.yaml", catalog)
	k.ok("create -f @catalog.yaml")
	k.put("ships.yaml", shipDefinition)
	k.ok("create -f @ships.yaml")
	objects := map[string]string{ // names of objects that cannot be named sample
		"customresourcedefinitions.apiextensions.k8s.io": "ships.sea.example.com",
		"apiservices.apiregistration.k8s.io":             "v1.sample.example.com",
		"ipaddresses.networking.k8s.io":                  "192.0.2.1",
		"componentstatuses":                              "storage", // created by the server
	}
	since := map[string]int{ // the minor version of kubectl since which it describes v1 of this kind
		"ipaddresses.networking.k8s.io": 33, "servicecidrs.networking.k8s.io": 33, "volumeattributesclasses.storage.k8s.io": 34,
	}
	explained := map[string]string{"events.events.k8s.io": "events --api-version=events.k8s.io/v1"} // kubectl would take the group for fields of events
	version := k.minor()
	var shown, described []string
	kinds := strings.Fields(k.ok("api-resources --verbs=list -o name"))
	require.Greater(t, len(kinds), 50)
	for _, kind := range kinds {
		if strings.HasSuffix(kind, ".example.com") {
			continue
		}
		name := objects[kind]
		if name == "" {
			name = "sample"
		}
		shown = append(shown, kind+"/"+name)
		if version >= since[kind] {
			described = append(described, kind+"/"+name)
		}
		t.Run("explain "+kind, func(t *testing.T) {
			t.Parallel()
			k := kubectl{files{t, k.dir}, k.address, k.kubeconfig}
			out := k.ok("explain "+cmp.Or(explained[kind], kind), "KIND:", "VERSION:", "DESCRIPTION:", "FIELDS:", "metadata")
			assert.NotContains(t, out, "<empty>")
		})
	}
	all := strings.Join(shown, " ")
	assert.Len(t, strings.Split(k.ok("-n sample get "+all), "\n\n"), len(shown), "a table for each kind")
	assert.Len(t, strings.Split(k.ok("-n sample get -o wide "+all), "\n\n"), len(shown), "a table for each kind")
	out := k.ok("-n sample describe " + strings.Join(described, " "))
	assert.Equal(t, len(described), strings.Count("\n"+out, "\nName:"), out)

	k.ok("delete namespace sample --wait=false", "deleted")
	k.ok("delete apiservice v1.sample.example.com", "deleted")              // its server does not exist, so its resources in the namespace cannot be deleted
	k.ok("-n sample delete pod sample --grace-period=0 --force", "deleted") // no kubelet reports that the pod ended
	k.ok("wait namespace/sample --for=delete --timeout=60s")
}

// minor returns the minor version of kubectl.
func (k kubectl) minor() int {
	k.Helper()
	var v struct{ ClientVersion struct{ Minor string } }
	require.NoError(k, json.Unmarshal([]byte(k.ok("version --client -o json")), &v))
	n, err := strconv.Atoi(strings.TrimRight(v.ClientVersion.Minor, "+"))
	require.NoError(k, err)
	return n
}

// TestKubectlEvents: an event written in one group is shown in both groups.
func TestKubectlEvents(t *testing.T) {
	k := newKubectl(t)
	k.put("event.yaml", `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: new, namespace: default}
regarding: {apiVersion: v1, kind: Pod, name: web, namespace: default}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/starter
reportingInstance: starter-1
action: Start
reason: Started
type: Normal
note: It began.
`)
	k.ok("create -f @event.yaml", "event.events.k8s.io/new created")
	for _, show := range []string{"events", "events --for=pod/web", "get events", "get events -o wide", "get events.events.k8s.io",
		"get events --field-selector=involvedObject.name=web", "get events.events.k8s.io --field-selector=regarding.name=web"} {
		k.ok(show, "Started", "od/web", "It began.") // kubectl uses its own short names of kinds
	}
	k.ok("get events.v1. new -o jsonpath={.message}", "It began.")
	k.ok("delete events.events.k8s.io new", "deleted")
	k.fails("get events new", "not found")
}

// TestKubectlGenerators creates workloads and related objects with kubectl's generators, and changes
// them.
func TestKubectlGenerators(t *testing.T) {
	k := newKubectl(t)
	k.ok("create deployment web --image=web:1 --replicas=2 --port=80", "deployment.apps/web created")
	k.ok("scale deployment web --current-replicas=2 --replicas=3", "scaled")
	k.fails("scale deployment web --current-replicas=2 --replicas=4", "Expected replicas to be 2, was 3")
	k.ok("set image deployment/web web=web:2", "image updated")
	k.ok("set resources deployment/web --limits=cpu=200m", "resource requirements updated")
	k.ok("set env deployment/web A=b", "env updated")
	k.ok("set serviceaccount deployment/web default", "serviceaccount updated")
	assert.Equal(t, "3 web:2 200m b default", k.ok(`get deployment web -o jsonpath={.spec.replicas}{"\u0020"}{.spec.template.spec.containers[0].image}`+
		`{"\u0020"}{..limits.cpu}{"\u0020"}{..env[0].value}{"\u0020"}{..serviceAccountName}`))
	k.ok("rollout pause deployment/web", "paused")
	k.fails("rollout restart deployment/web", "can't restart paused deployment")
	k.ok("rollout resume deployment/web", "resumed")
	k.ok("rollout restart deployment/web", "restarted")
	k.ok("autoscale deployment web --min=2 --max=5 --cpu-percent=60", "horizontalpodautoscaler.autoscaling/web autoscaled")
	assert.Equal(t, "2 5 60", k.ok(`get hpa web -o jsonpath={.spec.minReplicas}{"\u0020"}{.spec.maxReplicas}{"\u0020"}{..averageUtilization}`))
	k.ok("get hpa", "Deployment/web", "cpu: <unknown>/60%")
	k.ok("get horizontalpodautoscalers.v1.autoscaling web -o yaml", "targetCPUUtilizationPercentage: 60")
	k.ok("expose deployment web --port=80 --target-port=8080 --type=NodePort", "service/web exposed")
	k.ok("get service web", "NodePort", "80:3")

	k.ok("create job one --image=work:1 -- date", "job.batch/one created")
	k.ok("create cronjob often --image=work:1 --schedule=@hourly -- date", "cronjob.batch/often created")
	k.ok("create job now --from=cronjob/often", "job.batch/now created")
	k.ok("get job now -o jsonpath={.metadata.ownerReferences[0].name}", "often")
	k.ok("create ingress front --rule=a.example.com/*=web:80,tls=s --class=c", "ingress.networking.k8s.io/front created")
	k.ok("create quota few --hard=pods=10,services=50", "resourcequota/few created")
	k.ok("create pdb some --selector=app=web --min-available=1", "poddisruptionbudget.policy/some created")
	k.ok("create priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high created")
	k.ok("create service clusterip a --tcp=80", "service/a created")
	k.ok("create service nodeport b --tcp=80:8080", "service/b created")
	k.ok("create service loadbalancer c --tcp=80", "service/c created")
	k.ok("create service externalname d --external-name=d.example.com", "service/d created")
	k.ok("run solo --image=web:1 --labels=app=solo", "pod/solo created")
	k.ok("set image pod/solo solo=web:2", "image updated")
	k.ok("expose pod solo --port=80 --name=solo", "service/solo exposed")
	k.ok("get all", "pod/solo", "service/web", "deployment.apps/web", "cronjob.batch/often", "job.batch/now")
	k.ok("delete all --all --timeout=60s", "deleted")
	assert.NotContains(t, k.ok("get all"), "web")
}

// TestKubectlDrain drains a node, within the limits of a disruption budget.
func TestKubectlDrain(t *testing.T) {
	k := newKubectl(t)
	k.put("node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n")
	k.ok("create -f @node.yaml", "node/one created")
	k.ok("get node one -o jsonpath={.spec.taints[*].key}", "node.kubernetes.io/not-ready")
	k.ok("taint nodes one only=gpu:NoSchedule", "tainted")
	k.ok("taint nodes one only-", "untainted")
	k.ok("cordon one", "cordoned")
	k.ok("get node one", "SchedulingDisabled")
	k.ok("uncordon one", "uncordoned")

	for _, name := range []string{"kept", "free"} {
		k.put("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", labels: {app: "+name+"}}\nspec: {nodeName: one, containers: [{name: c, image: i}]}\n")
		k.ok("create -f @pod.yaml")
		k.ok("patch pod " + name + ` --subresource=status --type=merge -p {"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	}
	k.ok("create pdb kept --selector=app=kept --min-available=1")
	k.ok(`patch pdb kept --subresource=status --type=merge -p {"status":{"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"disruptionsAllowed":0}}`)
	k.fails("drain one --grace-period=0 --timeout=2s", "cannot delete Pods that declare no controller")
	k.ok("drain one --force --grace-period=0 --pod-selector=app=free --timeout=60s", "pod/free evicted")
	k.fails("drain one --force --grace-period=0 --timeout=5s", "Cannot evict pod as it would violate the pod's disruption budget.")
	k.ok(`patch pdb kept --subresource=status --type=merge -p {"status":{"disruptionsAllowed":1}}`)
	k.ok("drain one --force --grace-period=0 --timeout=60s", "node/one drained")
	assert.Equal(t, "No resources found in default namespace.", k.ok("get pods"))
}
