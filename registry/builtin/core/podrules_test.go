package core_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// in prefixes each cause with the path field.
func in(field string, causes ...string) []string {
	out := make([]string, len(causes))
	for i, c := range causes {
		for j := range c {
			if c[j] == ':' {
				out[i] = c[:j+1] + field + c[j+1:]
				break
			}
		}
	}
	return out
}

func TestContainerRules(t *testing.T) {
	k := kind(t, "Pod")
	const at = "spec.containers[0]."
	for fields, want := range map[string][]string{
		`"image":""`:                     {"Required:image"},
		`"terminationMessagePolicy":"X"`: {"NotSupported:terminationMessagePolicy"},
		`"resources":{"limits":{"cpu":"1","hugepages-2Mi":"-1"}}`:  {"Invalid:resources.limits[hugepages-2Mi]", "Invalid:resources.limits[hugepages-2Mi]", "Invalid:resources.requests[hugepages-2Mi]", "Invalid:resources.requests[hugepages-2Mi]"},
		`"resources":{"limits":{"cpu":"1","hugepages-2Mi":"3Mi"}}`: {"Invalid:resources.limits[hugepages-2Mi]", "Invalid:resources.requests[hugepages-2Mi]"},
		`"resources":{"limits":{"cpu":"1","hugepages-x":"3"}}`:     {"Invalid:resources.limits[hugepages-x]", "Invalid:resources.requests[hugepages-x]"},
		`"readinessProbe":{"tcpSocket":{"port":""}}`:               {"Invalid:readinessProbe.tcpSocket.port", "Invalid:readinessProbe.tcpSocket.port"},
		`"restartPolicy":"X"`:     {"NotSupported:restartPolicy"},
		`"restartPolicy":"Never"`: {},
		`"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[1]}}]`:                                     {"Required:restartPolicy"},
		`"restartPolicy":"Never","restartPolicyRules":[{"action":"X"}]`:                                                              {"NotSupported:restartPolicyRules[0].action", "Required:restartPolicyRules[0].exitCodes"},
		`"restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"X"}}]`:                           {"NotSupported:restartPolicyRules[0].exitCodes.operator"},
		`"resizePolicy":[{"resourceName":"disk","restartPolicy":"X"}]`:                                                               {"NotSupported:resizePolicy", "NotSupported:resizePolicy"},
		`"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"cpu","restartPolicy":"NotRequired"}]`: {"Duplicate:resizePolicy[1]"},
		`"ports":[{"name":"Bad_Name","containerPort":1}]`:                                                                            {"Invalid:ports[0].name"},
		`"ports":[{"name":"a","containerPort":1},{"name":"a","containerPort":2}]`:                                                    {"Duplicate:ports[1].name"},
		`"ports":[{"containerPort":1,"hostPort":70000}]`:                                                                             {"Invalid:ports[0].hostPort"},
		`"ports":[{"containerPort":1,"hostPort":5},{"containerPort":2,"hostPort":5}]`:                                                {"Duplicate:ports[1].hostPort"},
		`"ports":[{"containerPort":1,"hostPort":5},{"containerPort":2,"hostPort":5,"protocol":"UDP"}]`:                               {},
		`"env":[{"name":""}]`:                                            {"Required:env[0].name"},
		`"env":[{"name":"a=b"}]`:                                         {"Invalid:env[0].name"},
		`"env":[{"name":"A","valueFrom":{}}]`:                            {"Invalid:env[0].valueFrom"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":""}}}]`: {"Required:env[0].valueFrom.fieldRef.fieldPath"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v2","fieldPath":"metadata.name"}}}]`:                     {"Invalid:env[0].valueFrom.fieldRef.fieldPath"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"status.phase"}}}]`:                                        {"NotSupported:env[0].valueFrom.fieldRef.fieldPath"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}}]`:                                     {"NotSupported:env[0].valueFrom.fieldRef.fieldPath"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a b']"}}}]`:                              {"Invalid:env[0].valueFrom.fieldRef"},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['X.io/y']"}}}]`:                      {},
		`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name['x']"}}}]`:                                  {"Invalid:env[0].valueFrom.fieldRef.fieldPath"},
		`"env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":""}}}]`:                                             {"Required:env[0].valueFrom.resourceFieldRef.resource"},
		`"env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.gpu"}}}]`:                                   {"NotSupported:env[0].valueFrom.resourceFieldRef.resource"},
		`"env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"2"}}}]`:                     {"Invalid:env[0].valueFrom.resourceFieldRef.divisor"},
		`"env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}}]`:                {},
		`"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"","key":""}}}]`:                                         {"Invalid:env[0].valueFrom.configMapKeyRef.name", "Required:env[0].valueFrom.configMapKeyRef.key"},
		`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"a/b"}}}]`:                                        {"Invalid:env[0].valueFrom.secretKeyRef.key"},
		`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"a"},"configMapKeyRef":{"name":"s","key":"a"}}}]`: {"Invalid:env[0].valueFrom"},
		`"envFrom":[{}]`: {"Invalid:envFrom"},
		`"envFrom":[{"prefix":"=","configMapRef":{}}]`:                                      {"Invalid:envFrom[0].prefix", "Required:envFrom[0].configMapRef.name"},
		`"envFrom":[{"secretRef":{"name":"A"}}]`:                                            {"Invalid:envFrom[0].secretRef.name"},
		`"envFrom":[{"secretRef":{"name":"a"},"configMapRef":{"name":"a"}}]`:                {"Invalid:envFrom"},
		`"volumeMounts":[{"name":"","mountPath":"/a"}]`:                                     {"Required:volumeMounts[0].name", "NotFound:volumeMounts[0].name"},
		`"volumeMounts":[{"name":"v","mountPath":"/a","mountPropagation":"X"}]`:             {"NotSupported:volumeMounts.mountPropagation"},
		`"volumeMounts":[{"name":"v","mountPath":"/a","mountPropagation":"Bidirectional"}]`: {"Forbidden:volumeMounts.mountPropagation"},
		`"volumeMounts":[{"name":"v","mountPath":"/a","recursiveReadOnly":"Enabled"}]`:      {"Forbidden:volumeMounts.recursiveReadOnly"},
		`"volumeMounts":[{"name":"v","mountPath":"/a","subPathExpr":"../$(A)"}]`:            {"Invalid:volumeMounts.subPathExpr"},
		`"volumeDevices":[{"name":"v","devicePath":"/d"}]`:                                  {"Invalid:volumeDevices[0].name"},
		`"volumeDevices":[{"name":"x","devicePath":""}]`:                                    {"NotFound:volumeDevices[0].name", "Required:volumeDevices[0].devicePath"},
		`"volumeMounts":[{"name":"v","mountPath":"/a"}],"volumeDevices":[{"name":"w","devicePath":"/a"}]`: {
			"Invalid:volumeMounts[0].mountPath", "NotFound:volumeDevices[0].name", "Invalid:volumeDevices[0].devicePath"},
		`"resources":{"limits":{"pods":"1"}}`:                                                           {"Invalid:resources.limits[pods]", "Invalid:resources.requests[pods]"},
		`"resources":{"limits":{"a b":"1"}}`:                                                            {"Invalid:resources.limits[a b]", "Invalid:resources.limits[a b]", "Invalid:resources.requests[a b]", "Invalid:resources.requests[a b]"},
		`"resources":{"limits":{"cpu":"-1"}}`:                                                           {"Invalid:resources.limits[cpu]", "Invalid:resources.requests[cpu]"},
		`"resources":{"limits":{"x.io/gpu":"0.5"}}`:                                                     {"Invalid:resources.limits[x.io/gpu]", "Invalid:resources.requests[x.io/gpu]"},
		`"resources":{"requests":{"x.io/gpu":"1"}}`:                                                     {"Required:resources.limits"},
		`"resources":{"requests":{"x.io/gpu":"1"},"limits":{"x.io/gpu":"2"}}`:                           {"Invalid:resources.requests"},
		`"resources":{"limits":{"hugepages-2Mi":"2Mi"}}`:                                                {"Forbidden:resources"},
		`"resources":{"claims":[{"name":"c"}]}`:                                                         {"NotFound:resources.claims[0]"},
		`"resources":{"claims":[{"name":""}]}`:                                                          {"Required:resources.claims[0]"},
		`"imagePullPolicy":""`:                                                                          {},
		`"livenessProbe":{"exec":{}}`:                                                                   {"Required:livenessProbe.exec.command"},
		`"livenessProbe":{"tcpSocket":{"port":0}}`:                                                      {"Invalid:livenessProbe.tcpSocket.port"},
		`"livenessProbe":{"tcpSocket":{"port":"UPPER"}}`:                                                {"Invalid:livenessProbe.tcpSocket.port", "Invalid:livenessProbe.tcpSocket.port"},
		`"livenessProbe":{"grpc":{"port":70000}}`:                                                       {"Invalid:livenessProbe.grpc.port"},
		`"livenessProbe":{"exec":{"command":["a"]},"httpGet":{"port":1}}`:                               {"Forbidden:livenessProbe.httpGet"},
		`"livenessProbe":{"httpGet":{"port":1,"scheme":"FTP"}}`:                                         {"NotSupported:livenessProbe.httpGet.scheme"},
		`"livenessProbe":{"httpGet":{"port":1,"httpHeaders":[{"name":"a b"}]}}`:                         {"Invalid:livenessProbe.httpGet.httpHeaders"},
		`"livenessProbe":{"tcpSocket":{"port":1},"periodSeconds":-1}`:                                   {"Invalid:livenessProbe.periodSeconds"},
		`"livenessProbe":{"tcpSocket":{"port":1},"terminationGracePeriodSeconds":0}`:                    {"Invalid:livenessProbe.terminationGracePeriodSeconds"},
		`"readinessProbe":{"tcpSocket":{"port":1},"terminationGracePeriodSeconds":1}`:                   {"Invalid:readinessProbe.terminationGracePeriodSeconds"},
		`"readinessProbe":{"tcpSocket":{"port":1},"successThreshold":3}`:                                {},
		`"lifecycle":{"preStop":{}}`:                                                                    {"Required:lifecycle.preStop"},
		`"lifecycle":{"preStop":{"sleep":{"seconds":31}}}`:                                              {"Invalid:lifecycle.preStop.sleep"},
		`"lifecycle":{"stopSignal":"SIGTERM"}`:                                                          {"Forbidden:lifecycle.stopSignal"},
		`"securityContext":{"runAsUser":-1,"runAsGroup":4294967296}`:                                    {"Invalid:securityContext.runAsUser", "Invalid:securityContext.runAsGroup"},
		`"securityContext":{"procMount":"Unmasked"}`:                                                    {"Invalid:securityContext.procMount"},
		`"securityContext":{"procMount":"X"}`:                                                           {"NotSupported:securityContext.procMount"},
		`"securityContext":{"seccompProfile":{"type":""}}`:                                              {"Required:securityContext.seccompProfile.type"},
		`"securityContext":{"seccompProfile":{"type":"Localhost"}}`:                                     {"Required:securityContext.seccompProfile.localhostProfile"},
		`"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"/abs"}}`:           {"Invalid:securityContext.seccompProfile.localhostProfile"},
		`"securityContext":{"seccompProfile":{"type":"RuntimeDefault","localhostProfile":"x"}}`:         {"Invalid:securityContext.seccompProfile.localhostProfile"},
		`"securityContext":{"appArmorProfile":{"type":"X"}}`:                                            {"NotSupported:securityContext.appArmorProfile.type"},
		`"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":" x"}}`:            {"Invalid:securityContext.appArmorProfile.localhostProfile"},
		`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_SYS_ADMIN"]}}`: {"Invalid:securityContext"},
		`"securityContext":{"windowsOptions":{"gmsaCredentialSpecName":"A","runAsUserName":"a\\b\\c"}}`: {"Invalid:securityContext.windowsOptions.gmsaCredentialSpecName", "Invalid:securityContext.windowsOptions.runAsUserName"},
	} {
		k.Creates(t, map[string][]string{withContainer(fields): in(at, want...)})
	}
}

func TestPodSpecRules(t *testing.T) {
	k := kind(t, "Pod")
	const spread = `{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}`
	required := func(term string) string {
		return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + term + `]}}}`
	}
	const terms = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	const pods = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
	for fields, want := range map[string][]string{
		`"initContainers":[{"name":"c","image":"i"}]`:                                                   {"Duplicate:initContainers[0].name"},
		`"initContainers":[{"name":"i","image":"i","restartPolicy":"X"}]`:                               {"NotSupported:initContainers[0].restartPolicy"},
		`"initContainers":[{"name":"i","image":"i","lifecycle":{},"startupProbe":{}}]`:                  {"Forbidden:initContainers[0].lifecycle", "Forbidden:initContainers[0].startupProbe"},
		`"initContainers":[{"name":"i","image":"i","restartPolicy":"Always","startupProbe":{}}]`:        {"Required:initContainers[0].startupProbe"},
		`"initContainers":[{"name":"i","image":" i"}]`:                                                  {"Invalid:initContainers[0].image"},
		`"ephemeralContainers":[{"name":"e","image":"i","ports":[{"containerPort":1}],"lifecycle":{}}]`: {"Forbidden:ephemeralContainers[0].ports", "Forbidden:ephemeralContainers[0].lifecycle", "Forbidden:ephemeralContainers"},
		`"imagePullSecrets":[{"name":""}]`:                                                              {},
		`"terminationGracePeriodSeconds":-1`:                                                            {},
		`"dnsPolicy":"X"`:                                                                               {"NotSupported:dnsPolicy"},
		`"dnsPolicy":"None","dnsConfig":{}`:                                                             {"Required:dnsConfig.nameservers"},
		`"dnsConfig":{"nameservers":["a"],"searches":["a_b.c","."],"options":[{}]}`:                     {"Invalid:dnsConfig.nameservers[0]", "Required:dnsConfig.options[0]"},
		`"dnsConfig":{"nameservers":["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]}`:                         {"Invalid:dnsConfig.nameservers"},
		`"dnsConfig":{"searches":["A"]}`:                                                                {"Invalid:dnsConfig.searches[0]"},
		`"hostAliases":[{"ip":"x","hostnames":["A"]}]`:                                                  {"Invalid:hostAliases[0].ip", "Invalid:hostAliases[0].hostnames[0]"},
		`"subdomain":"A","hostname":"B"`:                                                                {"Invalid:hostname", "Invalid:subdomain"},
		`"serviceAccountName":"A"`:                                                                      {"Invalid:serviceAccountName"},
		`"nodeName":"A"`:                                                                                {"Invalid:nodeName"},
		`"nodeName":"a","schedulingGates":[{"name":"g"}]`:                                               {"Forbidden:nodeName"},
		`"schedulingGates":[{"name":"g"},{"name":"g"},{"name":"a b"}]`:                                  {"Duplicate:schedulingGates[1]", "Invalid:schedulingGates[2]"},
		`"readinessGates":[{"conditionType":"a b"}]`:                                                    {"Invalid:readinessGates[0].conditionType"},
		`"priorityClassName":"A"`:                                                                       {"Invalid:priorityClassName"},
		`"runtimeClassName":"A"`:                                                                        {"Invalid:runtimeClassName"},
		`"preemptionPolicy":"X"`:                                                                        {"NotSupported:preemptionPolicy"},
		`"overhead":{"cpu":"-1"}`:                                                                       {"Invalid:overhead.limits[cpu]"},
		`"os":{"name":"beos"}`:                                                                          {"NotSupported:os"},
		`"os":{}`:                                                                                       {"Required:os.name"},
		`"os":{"name":"linux"},"securityContext":{"windowsOptions":{}}`:                                 {"Forbidden:securityContext.windowsOptions"},
		`"os":{"name":"windows"},"hostPID":true,"securityContext":{"runAsUser":1}`:                      {"Forbidden:hostPID", "Forbidden:securityContext.runAsUser"},
		`"hostUsers":false,"hostNetwork":true,"hostPID":true`:                                           {"Forbidden:hostNetwork", "Forbidden:HostPID"},
		`"shareProcessNamespace":true,"hostPID":true`:                                                   {"Invalid:securityContext.shareProcessNamespace"},
		`"securityContext":{"windowsOptions":{"hostProcess":true}}`:                                     {"Invalid:hostNetwork"},
		`"securityContext":{"sysctls":[{"name":""},{"name":"A"},{"name":"a.b"},{"name":"a.b"}]}`:        {"Required:securityContext.sysctls[0].name", "Invalid:securityContext.sysctls[1].name", "Duplicate:securityContext.sysctls[3].name"},
		`"hostNetwork":true,"securityContext":{"sysctls":[{"name":"net.x"}]}`:                           {"Invalid:securityContext.sysctls[0].name"},
		`"securityContext":{"supplementalGroups":[-1],"fsGroupChangePolicy":"X","supplementalGroupsPolicy":"X"}`: {
			"Invalid:securityContext.supplementalGroups[0]", "NotSupported:securityContext.fsGroupChangePolicy", "NotSupported:securityContext.supplementalGroupsPolicy"},
		`"tolerations":[{"key":"k","operator":"Exists","value":"v"}]`:                                 {"Invalid:tolerations[0].operator"},
		`"tolerations":[{"key":"k","operator":"Like"}]`:                                               {"NotSupported:tolerations[0].operator"},
		`"tolerations":[{"key":"k","value":"a b"}]`:                                                   {"Invalid:tolerations[0].operator"},
		`"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule","tolerationSeconds":1}]`: {"Invalid:tolerations[0].effect"},
		`"topologySpreadConstraints":[` + spread + `},` + spread + `,"minDomains":0}]`:                {"Duplicate:topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}", "Invalid:topologySpreadConstraints[1].minDomains"},
		`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","minDomains":1,"matchLabelKeys":["a"]}]`: {
			"Invalid:topologySpreadConstraints[0].minDomains", "Forbidden:topologySpreadConstraints[0].matchLabelKeys"},
		required(``): {"Required:" + terms},
		required(`{"matchExpressions":[{"key":"a","operator":"In"}]}`):                       {"Required:" + terms + "[0].matchExpressions[0].values"},
		required(`{"matchExpressions":[{"key":"a","operator":"Gt","values":["x"]}]}`):        {},
		required(`{"matchExpressions":[{"key":"a","operator":"In","values":["a b"]}]}`):      {"Invalid:" + terms + "[0].matchExpressions[0].values[0]"},
		required(`{"matchExpressions":[{"key":"a b","operator":"Near"}]}`):                   {"Invalid:" + terms + "[0].matchExpressions[0].operator", "Invalid:" + terms + "[0].matchExpressions[0].key"},
		required(`{"matchFields":[{"key":"metadata.name","operator":"In","values":["A"]}]}`): {"Invalid:" + terms + "[0].matchFields[0].values[0]"},
		required(`{"matchFields":[{"key":"x","operator":"Exists"}]}`):                        {"Invalid:" + terms + "[0].matchFields[0].operator", "Invalid:" + terms + "[0].matchFields[0].key"},
		`"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,"preference":{}}]}}`: {
			"Invalid:affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
		`"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z","namespaces":["A"],"matchLabelKeys":["a"]}]}}`: {
			"Invalid:" + pods + "namespace", "Forbidden:" + pods + "matchLabelKeys"},
		`"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z","labelSelector":{},"matchLabelKeys":["b","a"],"mismatchLabelKeys":["a"]}]}}`: {
			"Invalid:" + pods + "matchLabelKeys[1]"},
		`"resourceClaims":[{"name":"a"},{"name":"a","resourceClaimName":"x"}]`: {"Invalid:resourceClaims[0]", "Duplicate:resourceClaims[1].name"},
		`"resources":{"limits":{"pods":"1"},"claims":[{"name":"a"}]}`:          {"Forbidden:resources.claims", "NotSupported:resources.limits[pods]", "NotFound:resources.claims[0]"},
		`"volumes":[{"name":"v","configMap":{}},{"name":"v","emptyDir":{}}]`:   {"Required:volumes[0].configMap.name"},
	} {
		k.Creates(t, map[string][]string{withSpec(fields): in("spec.", want...)})
	}
	const notes = "metadata.annotations"
	k.Creates(t, map[string][]string{
		`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-5"}},"spec":{"containers":[` + box + `]}}`: {},
		`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"+5"}},"spec":{"containers":[` + box + `]}}`: {"Invalid:" + notes + "[controller.kubernetes.io/pod-deletion-cost]"},
		`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"containers":[` + box + `]}}`:                 {"Invalid:" + notes + "[kubernetes.io/config.mirror]"},
		`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n","containers":[` + box + `]}}`:  {},
		withSpec(`"hostnameOverride":"A","hostNetwork":true`):                                                                  {"Forbidden:spec.hostnameOverride", "Invalid:spec.hostnameOverride"},
	})
	old, _ := k.Create(t, `{"spec":{"nodeName":"n","containers":[`+box+`]}}`)
	_, faults := k.Update(t, old, `{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}}`, "")
	require.Equal(t, []string{"Forbidden:" + notes + "[kubernetes.io/config.mirror]"}, faults)
	k.Creates(t, map[string][]string{
		`{"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"hostPort":2}]}]}}`: {"Invalid:spec.containers[0].ports[0].hostPort"},
		`{"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/a"}]}],"volumes":[{"name":"v","configMap":{}}]}}`: {
			"Required:spec.volumes[0].configMap.name", "NotFound:spec.containers[0].volumeMounts[0].name"},
	})
}

func TestPodWarnings(t *testing.T) {
	k := kind(t, "Pod")
	for body, want := range map[string][]string{
		withSpec(`"terminationGracePeriodSeconds":-1`):                     nil, // defaulted to 1
		withSpec(`"imagePullSecrets":[{"name":"a"},{"name":"a"}]`):         {"spec.imagePullSecrets[1].name"},
		withVolume(`"projected":{"sources":[{}]}`):                         {`volume "v" (Projected) has no sources provided`},
		withContainer(`"ports":[{"containerPort":80,"hostIP":"1.2.3.4"}]`): {"spec.containers[0].ports[0]"},
		withSpec(`"imagePullSecrets":[{"name":""}]`):                       {"spec.imagePullSecrets[0].name"},
		withSpec(`"nodeSelector":{"beta.kubernetes.io/arch":"arm64"}`):     {"spec.nodeSelector[beta.kubernetes.io/arch]"},
		withSpec(`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"failure-domain.beta.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule"}]`): {
			"spec.topologySpreadConstraints[0].topologyKey", "spec.topologySpreadConstraints[0].labelSelector"},
		withSpec(`"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"}]}}`): {
			"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector"},
		withContainer(`"env":[{"name":"A"},{"name":"B"},{"name":"A"}]`):               {"spec.containers[0].env[2]"},
		withContainer(`"ports":[{"containerPort":1},{"containerPort":1,"name":"x"}]`): {"spec.containers[0].ports[1]"},
		withContainer(`"resources":{"requests":{"memory":"1m"}}`):                     {"spec.containers[0].resources.requests[memory]"},
		withVolume(`"gitRepo":{"repository":"r"}`):                                    {"spec.volumes[0].gitRepo"},
		withVolume(`"emptyDir":{}`):                                                   nil,
	} {
		obj, faults := k.Create(t, body)
		require.Empty(t, faults, body)
		var got []string
		for _, text := range k.Warn(k.NewChange(t.Context(), obj, nil, "")) {
			at, _, _ := strings.Cut(text, ": ")
			got = append(got, at)
		}
		require.Equal(t, want, got, body)
	}
}

// TestClassOfNothing checks that limits of 0 do not make a pod Guaranteed.
func TestClassOfNothing(t *testing.T) {
	k := kind(t, "Pod")
	obj, faults := k.Create(t, `{"spec":{"containers":[`+box+`],"resources":{"limits":{"cpu":"0","memory":"1Gi"},"requests":{"cpu":"0","memory":"1Gi"}}}}`)
	require.Empty(t, faults)
	require.Equal(t, "Burstable", obj.String("status", "qosClass"))
}

func TestPodPreparation(t *testing.T) {
	k := kind(t, "Pod")
	obj, faults := k.Create(t, `{"metadata":{"labels":{"app":"x","rev":"2"}},"spec":{"containers":[`+box+`],"schedulingGates":[{"name":"g"}],
		"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}},
		"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule","labelSelector":{},"matchLabelKeys":["rev","none"]}],
		"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"z","labelSelector":{},"mismatchLabelKeys":["app"]}}]}}}}`)
	require.Empty(t, faults)
	require.Equal(t, "Guaranteed", obj.String("status", "qosClass"))
	require.Equal(t, "SchedulingGated", k.Cell(t, obj, "Status"))
	term := func(v any) []any { return meta.NewObject(v.(map[string]any)).List("labelSelector", "matchExpressions") }
	require.Equal(t, []any{map[string]any{"key": "rev", "operator": "In", "values": []any{"2"}}}, term(obj.List("spec", "topologySpreadConstraints")[0]))
	wish := obj.List("spec", "affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")[0].(map[string]any)
	require.Equal(t, []any{map[string]any{"key": "app", "operator": "NotIn", "values": []any{"x"}}}, term(wish["podAffinityTerm"]))
}
