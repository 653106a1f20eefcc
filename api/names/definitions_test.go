package names_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

func TestDefinitionNames(t *testing.T) {
	for _, test := range []struct{ pkg, name, orch, kubernetes string }{
		{"core", "ConfigMap", "io.orch.api.core.v1.ConfigMap", "io.k8s.api.core.v1.ConfigMap"},
		{"rbac", "Role", "io.orch.api.rbac.v1.Role", "io.k8s.api.rbac.v1.Role"},
		{"flow/v1beta3", "Schema", "io.orch.api.flow.v1beta3.Schema", "io.k8s.api.flow.v1beta3.Schema"},
		{"meta", "ObjectMeta", "io.orch.apimachinery.pkg.apis.meta.v1.ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
		{"meta", "OwnerReference", "io.orch.apimachinery.pkg.apis.meta.v1.OwnerReference", "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"},
		{"core", "StoreAfsVolumeSource", "io.orch.api.core.v1.StoreAfsVolumeSource", "io.k8s.api.core.v1.CephFSVolumeSource"},
		{"extensions", "JSONSchemaProps", "io.orch.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
			"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"},
		{"networking", "IngressV1beta1", "io.orch.api.networking.v1beta1.Ingress", "io.k8s.api.networking.v1beta1.Ingress"},
		{"autoscaling", "MetricSpecV2beta1", "io.orch.api.autoscaling.v2beta1.MetricSpec", "io.k8s.api.autoscaling.v2beta1.MetricSpec"},
	} {
		assert.Equal(t, test.orch, names.Orch.Definition(test.pkg, test.name))
		assert.Equal(t, test.kubernetes, names.Kubernetes.Definition(test.pkg, test.name))
	}
}

func TestGroupBase(t *testing.T) {
	assert.Equal(t, "rbac.authorization", names.Kubernetes.GroupBase("rbac.authorization.k8s.io"))
	assert.Equal(t, "rbac.authorization", names.Orch.GroupBase("rbac.authorization.orch.io"))
	assert.Equal(t, "apps", names.Kubernetes.GroupBase("apps"))
	assert.Equal(t, "my.orch.io", names.Kubernetes.GroupBase("my.orch.io"))
}

func TestOpenAPIProtobuf(t *testing.T) {
	now, before := wellknown.OpenAPIProtobuf("2")
	assert.Equal(t, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", now)
	assert.Equal(t, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", before)
}
