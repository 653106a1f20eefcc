package resource

import (
	"context"
	"errors"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
)

// FieldManager returns the field manager of the type, which is compiled on first use. ctx bounds
// the conversions that the returned value runs.
func (t *Type) FieldManager(ctx context.Context) *apply.FieldManager {
	t.fieldManager.once.Do(func() {
		c := apply.Config{Kind: t.Kind, StatusMetadata: t.StatusMetadata, Unowned: t.Unowned,
			UntrackedReset:     t.Rules.Has(compat.ClearedOwners),
			ReservedAnnotation: t.Names.Wire(wellknown.HubForm), LastAppliedAnnotation: t.Names.Wire(wellknown.LastApplied)}
		for _, v := range t.Versions {
			c.Versions = append(c.Versions, apply.Version{APIVersion: v.GVK().APIVersion(), Schema: v.Schema(), Status: v.hasStatus()})
		}
		switch {
		case t.converts:
			c.Merge = t.mergeTree
		case t.Converter == nil && t.Rules.Has(compat.OwnersFit):
			c.StoredVersion = t.Storage.GVK().APIVersion()
		}
		t.fieldManager.value = apply.NewFieldManager(c)
	})
	if !t.converts && t.Converter == nil {
		return t.fieldManager.value
	}
	return t.fieldManager.value.WithConvert(func(apiVersion string, trees ...map[string]any) ([]map[string]any, error) {
		return t.convertTrees(ctx, apiVersion, trees)
	})
}

// convertTrees is ConvertAll for trees. It returns no trees if a conversion function rejects one of
// them.
func (t *Type) convertTrees(ctx context.Context, apiVersion string, trees []map[string]any) ([]map[string]any, error) {
	objs := make([]*meta.Object, len(trees))
	for i, tree := range trees {
		objs[i] = meta.NewObject(tree)
	}
	objs, err := t.ByAPIVersion(apiVersion).ConvertAll(ctx, objs...)
	var failed *ConversionError
	if errors.As(err, &failed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(objs))
	for i, obj := range objs {
		out[i] = obj.Tree()
	}
	return out, nil
}

// mergeTree is Merge for trees.
func (t *Type) mergeTree(live, before, after map[string]any) (map[string]any, error) {
	stored := meta.NewObject(live)
	obj, err := t.ByAPIVersion(stored.APIVersion()).Merge(context.Background(), stored, meta.NewObject(before), meta.NewObject(after))
	if err != nil {
		return nil, err
	}
	return obj.Tree(), nil
}

// fieldManager holds the field manager, which is compiled on first use because many types are never
// written.
type fieldManager struct {
	once  sync.Once
	value *apply.FieldManager
}
