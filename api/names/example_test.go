package names_test

import (
	"fmt"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

func ExampleProfile() {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		fmt.Println(p, p.Group("rbac.authorization.orch.io"), p.SystemNamespace("system"), p.ProtobufType())
	}
	fmt.Println(names.Same("storageclass.kubernetes.io/is-default-class", wellknown.DefaultStorageClass))
	// Output:
	// orch rbac.authorization.orch.io orch-system application/vnd.orch.protobuf
	// kubernetes rbac.authorization.k8s.io kube-system application/vnd.kubernetes.protobuf
	// true
}
