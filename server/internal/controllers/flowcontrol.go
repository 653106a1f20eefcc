package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/flowcontrol"
)

// FlowControl applies PriorityLevelConfiguration and FlowSchema objects to the flow control of a server.
type FlowControl struct {
	Names names.Profile
	Apply func(flowcontrol.Config) error // applies a configuration immediately
}

func (f FlowControl) schemas() meta.GroupResource {
	return meta.GroupResource{Group: f.Names.Group(wellknown.GroupFlowControl), Resource: "flowschemas"}
}

func (f FlowControl) levels() meta.GroupResource {
	return meta.GroupResource{Group: f.Names.Group(wellknown.GroupFlowControl), Resource: "prioritylevelconfigurations"}
}

// mandatory reports whether the level or schema with a name must exist, because some requests would otherwise match
// no level.
func mandatory(name string) bool { return name == "exempt" || name == "catch-all" }

// Start creates the objects of the default configuration, updates those that users have not taken over, applies the
// configuration, and writes the conditions of the schemas.
func (f FlowControl) Start(ctx context.Context, client client.Client) error {
	if err := f.restore(ctx, client, func(string) bool { return true }); err != nil {
		return err
	}
	if err := f.apply(ctx, client); err != nil {
		return err
	}
	return f.writeConditions(ctx, client)
}

// restore creates or updates the default objects that which selects by name.
func (f FlowControl) restore(ctx context.Context, client client.Client, which func(name string) bool) error {
	config := flowcontrol.Default(f.Names)
	for _, l := range config.Levels {
		if which(l.Name) {
			if err := f.write(ctx, client, f.levels(), levelObject(f.Names, l)); err != nil {
				return err
			}
		}
	}
	for _, s := range config.Schemas {
		if which(s.Name) {
			if err := f.write(ctx, client, f.schemas(), schemaObject(f.Names, s)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write creates a default object. An existing object is updated if it is mandatory or its annotation allows it.
func (f FlowControl) write(ctx context.Context, client client.Client, r meta.GroupResource, o *meta.Object) error {
	key := f.Names.Wire(wellknown.FlowAutoupdate)
	old, err := client.Get(ctx, r, meta.Key{Name: o.Name()})
	if meta.IsNotFound(err) {
		if _, err = client.Create(ctx, r, o); meta.IsAlreadyExists(err) {
			return nil
		}
	} else if err == nil && !meta.Equal(old.Map("spec"), o.Map("spec")) {
		_, err = client.Update(ctx, r, meta.Key{Name: o.Name()}, "", func(old *meta.Object) error {
			spec := meta.Clone(o.Map("spec")).(map[string]any)
			switch {
			case o.Name() == "exempt" && old.Map("spec", "exempt") != nil: // this part belongs to the operator
				spec["exempt"] = meta.Clone(old.Map("spec", "exempt"))
			case !mandatory(o.Name()) && !autoupdate(old, key):
				return nil
			}
			old.Set(spec, "spec")
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", r, o.Name(), err)
	}
	return nil
}

// autoupdate reports whether the server may update the spec of an object: the value of its annotation, or, if that is
// not a boolean, whether the spec has never been changed.
func autoupdate(o *meta.Object, annotation string) bool {
	update, err := strconv.ParseBool(o.Annotation(annotation))
	return update || err != nil && o.Generation() == 1
}

// apply applies the configuration that the objects define. Mandatory levels and schemas without an object have their
// default.
func (f FlowControl) apply(ctx context.Context, client client.Client) error {
	levels, err := client.List(ctx, f.levels(), "")
	if err != nil {
		return err
	}
	schemas, err := client.List(ctx, f.schemas(), "")
	if err != nil {
		return err
	}
	var config flowcontrol.Config
	byDefault := flowcontrol.Default(f.Names)
	exists := map[string]bool{}
	for _, o := range levels {
		exists[o.Name()] = true
		config.Levels = append(config.Levels, level(o))
	}
	for _, l := range byDefault.Levels {
		if mandatory(l.Name) && !exists[l.Name] {
			exists[l.Name] = true
			config.Levels = append(config.Levels, l)
		}
	}
	for _, o := range schemas {
		if s := schema(o); exists[s.Level] {
			config.Schemas = append(config.Schemas, s)
		}
	}
	for _, s := range byDefault.Schemas {
		if mandatory(s.Name) && !slices.ContainsFunc(config.Schemas, func(c flowcontrol.FlowSchema) bool { return c.Name == s.Name }) {
			config.Schemas = append(config.Schemas, s)
		}
	}
	return f.Apply(config)
}

// Controller returns the controller that applies the objects when they change, restores the mandatory objects, and
// writes into the condition of each schema whether its level exists.
func (f FlowControl) Controller() client.Controller {
	const shares = "shares"
	return client.Controller{
		Name: "flowcontrol", Types: []meta.GroupResource{f.schemas(), f.levels()},
		MapEvent: func(e client.Event) []string { return []string{shares} },
		Reconcile: func(ctx context.Context, client client.Client, _ string) (time.Duration, error) {
			if err := f.apply(ctx, client); err != nil {
				return 0, err
			}
			if err := f.restore(ctx, client, mandatory); err != nil {
				return 0, err
			}
			return 0, f.writeConditions(ctx, client)
		},
	}
}

// writeConditions writes the condition Dangling of each schema if it has changed.
func (f FlowControl) writeConditions(ctx context.Context, client client.Client) error {
	schemas, err := client.List(ctx, f.schemas(), "")
	if err != nil {
		return err
	}
	levels, err := client.List(ctx, f.levels(), "")
	if err != nil {
		return err
	}
	for _, o := range schemas {
		name := o.String("spec", "priorityLevelConfiguration", "name")
		status, reason, message := "False", "Found", fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", name)
		if !slices.ContainsFunc(levels, func(l *meta.Object) bool { return l.Name() == name }) {
			status, reason = "True", "NotFound"
			message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", name)
		}
		if slices.ContainsFunc(o.Objects("status", "conditions"), func(c *meta.Object) bool {
			return c.String("type") == "Dangling" && c.String("status") == status && c.String("reason") == reason && c.String("message") == message
		}) {
			continue
		}
		_, err = client.Update(ctx, f.schemas(), meta.Key{Name: o.Name()}, "status", func(o *meta.Object) error {
			o.SetCondition("Dangling", status, reason, message)
			return nil
		})
		if err != nil && !meta.IsNotFound(err) {
			return err
		}
	}
	return nil
}
