package core_test

import (
	"context"
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

// Task is a kind with a pod template and claim templates.
type Task struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Template core.PodTemplateSpec         `json:"template"`
		Claims   []core.PersistentVolumeClaim `json:"claims,omitempty"`
	} `json:"spec"`
}

var tasks = registry.Definition[Task]{
	Group: "example.com", Version: "v1",
	Behavior: registry.Behavior{
		Default: func(w *registry.Change[meta.Object]) {
			core.DefaultPodSpec(w.New.Map("spec", "template", "spec"))
			for _, claim := range w.New.Objects("spec", "claims") {
				core.DefaultClaimTemplate(claim)
			}
		},
		Warn: func(w *registry.Change[meta.Object]) []string {
			return append(core.WarnOfPodNames(w), core.WarnOfPod(w, "spec", "template", "spec")...)
		},
	},
	Validate: func(w *registry.Change[Task]) {
		at, claims := check.At("spec", "template"), w.New.Spec.Claims
		t, faults := core.WithClaims(at, &w.New.Spec.Template, claims)
		w.Violations = append(w.Violations, faults...)
		for i := range claims {
			w.Violations = append(w.Violations, core.CheckClaimTemplate(w.Names, w.SchemaViolations, check.At("spec", "claims").Index(i), &claims[i])...)
		}
		kept := w.Old != nil && check.SemanticEqual(w.New.Spec, w.Old.Spec)
		if t.Spec.RestartPolicy == "Always" {
			w.Violations = append(w.Violations, core.CheckLastingTemplate(w.Names, w.SchemaViolations, at, true, t, kept)...)
			return
		}
		w.Violations = append(w.Violations, core.CheckPodTemplate(w.Names, w.SchemaViolations, at, t, kept)...)
	},
	Columns: append(core.TemplateColumns(0, "spec", "template", "spec"), registry.Column{Name: "First", Type: "string", Cell: func(o *meta.Object) any {
		names, _ := core.ContainerNames(o.Map("spec", "template", "spec"))
		first, _, _ := strings.Cut(names, ",")
		return first
	}}),
}

// A kind of a program with a pod template applies the defaults, rules and warnings of pods.
func ExampleCheckPodTemplate() {
	ctx := context.Background()
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	b.Register(registry.Of(tasks))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"broom", "The Broom"} {
		task, err := b.Client().Create(ctx, meta.GroupResource{Group: "example.com", Resource: "tasks"}, meta.NewObject(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Task", "metadata": map[string]any{"generateName": "sweep-", "namespace": "default"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": name, "image": "example.com/broom:1"}},
			}}},
		}))
		if err != nil {
			fmt.Println(meta.ReasonOf(err), strings.Contains(err.Error(), "spec.template.spec.containers[0].name"))
			continue
		}
		fmt.Println(task.String("spec", "template", "spec", "restartPolicy"))
	}
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// Always
	// Invalid true
	// <nil>
}
