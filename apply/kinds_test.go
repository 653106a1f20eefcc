package apply

import (
	"orch.io/controlplane/api/schema"
)

// The schemas that the tests share, as the registry builds them.

func text() *schema.Schema { return &schema.Schema{Type: schema.String} }

func numeric() *schema.Schema { return &schema.Schema{Type: schema.Integer} }

func mapOf(v *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Object, Values: v} }

func listOf(v *schema.Schema) *schema.Schema { return &schema.Schema{Type: schema.Array, Items: v} }

// keyedList is a list of objects merged by key: patchMergeKey, and keys if the
// list type has more of them.
func keyedList(item *schema.Schema, mergeKey string, keys ...string) *schema.Schema {
	s := listOf(item)
	s.PatchStrategy, s.PatchMergeKey = "merge", mergeKey
	if keys != nil {
		s.ListType, s.ListKeys = "map", keys
	}
	return s
}

type fields map[string]*schema.Schema

// object is a struct; goType says that it comes from Go, where a field left out
// is a zero.
func object(goType bool, fs fields) *schema.Schema {
	st := &schema.Struct{}
	for name, s := range fs {
		f := &schema.Field{Name: name, Schema: s}
		if goType {
			f.Index = []int{0}
		}
		st.Add(f)
	}
	return &schema.Schema{Type: schema.Object, Struct: st}
}

func withDefault(s *schema.Schema, v any) *schema.Schema {
	s.Default = v
	return s
}

func atomic(s *schema.Schema) *schema.Schema {
	s.ListType, s.MapType = "atomic", "atomic"
	return s
}

func configMapSchema() *schema.Schema {
	return object(true, fields{"data": mapOf(text()), "binaryData": mapOf(text()), "immutable": {Type: schema.Boolean}})
}

func serviceSchema() *schema.Schema {
	port := object(true, fields{
		"name": text(), "port": numeric(), "protocol": withDefault(text(), "TCP"),
		"targetPort": {IntOrString: true, Wire: schema.IntOrString}, "nodePort": numeric(),
	})
	return object(true, fields{"spec": object(true, fields{
		"ports": keyedList(port, "port", "port", "protocol"), "clusterIP": text(), "type": text(),
		"selector": atomic(mapOf(text())),
	})})
}

func deploymentSchema() *schema.Schema {
	quantity := &schema.Schema{Type: schema.String, Wire: schema.Quantity}
	env := object(true, fields{"name": text(), "value": text(), "valueFrom": object(true, fields{"fieldRef": atomic(object(true, fields{"fieldPath": text()}))})})
	port := object(true, fields{"name": text(), "containerPort": numeric(), "protocol": withDefault(text(), "TCP")})
	mount := object(true, fields{"name": text(), "mountPath": text()})
	container := object(true, fields{
		"name": text(), "image": text(), "imagePullPolicy": text(), "args": listOf(text()), "command": listOf(text()),
		"env": keyedList(env, "name"), "ports": keyedList(port, "containerPort", "containerPort", "protocol"),
		"volumeMounts":           keyedList(mount, "mountPath"),
		"resources":              object(true, fields{"limits": mapOf(quantity), "requests": mapOf(quantity)}),
		"terminationMessagePath": text(), "terminationMessagePolicy": text(),
	})
	volume := object(true, fields{
		"name": text(), "emptyDir": object(true, fields{"medium": text()}),
		"configMap": object(true, fields{"name": text(), "defaultMode": numeric()}),
	})
	volumes := keyedList(volume, "name")
	volumes.PatchStrategy = "merge,retainKeys"
	alias := object(true, fields{"ip": text(), "hostnames": listOf(text())})
	secret := object(true, fields{"name": text()})
	pod := object(true, fields{
		"containers": keyedList(container, "name"), "volumes": volumes, "hostAliases": keyedList(alias, "ip"),
		"imagePullSecrets": keyedList(secret, "name"), "nodeSelector": atomic(mapOf(text())),
		"tolerations":     atomic(listOf(object(true, fields{"key": text(), "operator": text()}))),
		"securityContext": object(true, fields{"runAsUser": numeric(), "runAsGroup": numeric()}),
		"restartPolicy":   text(), "dnsPolicy": text(), "schedulerName": text(), "terminationGracePeriodSeconds": numeric(),
	})
	finalizers := listOf(text())
	finalizers.PatchStrategy = "merge"
	metadata := object(true, fields{
		"name": text(), "labels": mapOf(text()), "annotations": mapOf(text()), "finalizers": finalizers,
	})
	strategy := object(true, fields{"type": text(), "rollingUpdate": object(true, fields{
		"maxSurge": {IntOrString: true}, "maxUnavailable": {IntOrString: true},
	})})
	strategy.PatchStrategy = "retainKeys"
	return object(true, fields{
		"metadata": metadata,
		"spec": object(true, fields{
			"replicas": numeric(), "selector": atomic(object(true, fields{"matchLabels": mapOf(text())})),
			"template": object(true, fields{"metadata": metadata, "spec": pod}), "strategy": strategy,
			"revisionHistoryLimit": numeric(), "progressDeadlineSeconds": numeric(),
		}),
		"status": object(true, fields{"replicas": numeric()}),
	})
}
