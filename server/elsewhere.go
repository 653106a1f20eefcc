package server

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/controllers"
)

// servedElsewhere reports whether another server serves a version.
func (s *Server) servedElsewhere(gv meta.GroupVersion) bool {
	return s.aggregation != nil && s.aggregation.Table().Remote(gv) != nil
}

// elsewhere implements controllers.Elsewhere.
func (s *Server) elsewhere() (list []controllers.Collection, unknown []error) {
	if s.aggregation == nil {
		return nil, nil
	}
	all, unknown := s.aggregation.Collections()
	for _, c := range all {
		list = append(list, collection{c})
	}
	return list, unknown
}

// collection implements controllers.Collection.
type collection struct{ aggregator.Collection }

func (c collection) Delete(ctx context.Context, namespace string) error {
	if err := c.Collection.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("deleting %s in %s: %w", c.GroupResource, namespace, err)
	}
	return nil
}

func (c collection) Left(ctx context.Context, namespace string) (controllers.Remaining, error) {
	n, finalizers, err := c.Collection.Left(ctx, namespace)
	if err != nil {
		err = fmt.Errorf("listing %s in %s: %w", c.GroupResource, namespace, err)
	}
	return controllers.Remaining{Resource: c.GroupResource, Objects: n, Finalizers: finalizers}, err
}
