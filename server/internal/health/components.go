package health

import (
	"context"

	"orch.io/controlplane/api/meta"
)

// Components returns the results of the checks of the parts that the server depends on, as objects of
// the kind ComponentStatus.
func (h *Handler) Components(ctx context.Context) ([]*meta.Object, error) {
	list := []*meta.Object{}
	for _, c := range h.checks("readyz") {
		if !c.component {
			continue
		}
		healthy := map[string]any{"type": "Healthy", "status": "True", "message": "ok"}
		if err := c.run(ctx); err != nil {
			healthy["status"], healthy["message"] = "False", err.Error()
		}
		list = append(list, meta.NewObject(map[string]any{"metadata": map[string]any{"name": c.name}, "conditions": []any{healthy}}))
	}
	return list, nil
}
