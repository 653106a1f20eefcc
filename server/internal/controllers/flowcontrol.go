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

// FlowControl keeps the shares of a server what the objects of its levels and
// schemas say.
type FlowControl struct {
	Names names.Profile
	Apply func(flowcontrol.Config) error // takes a configuration at once
}

func (f FlowControl) schemas() meta.GroupResource {
	return meta.GroupResource{Group: f.Names.Group(wellknown.GroupFlowControl), Resource: "flowschemas"}
}

func (f FlowControl) levels() meta.GroupResource {
	return meta.GroupResource{Group: f.Names.Group(wellknown.GroupFlowControl), Resource: "prioritylevelconfigurations"}
}

// mandatory are the level and the schema without which some requests have no place.
func mandatory(name string) bool { return name == "exempt" || name == "catch-all" }

// Start makes the objects of the default configuration, brings those that nobody took
// over up to it, applies what there is then, and tells of it.
func (f FlowControl) Start(ctx context.Context, client client.Client) error {
	if err := f.restore(ctx, client, func(string) bool { return true }); err != nil {
		return err
	}
	if err := f.apply(ctx, client); err != nil {
		return err
	}
	return f.tell(ctx, client)
}

// restore writes the default objects of some names.
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

// write makes an object as it is by default. One that is there is changed if its
// annotation lets it, or if it has to be so.
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
			case o.Name() == "exempt" && old.Map("spec", "exempt") != nil: // the one part that is the operator's
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

// autoupdate reports whether the server may change the spec of an object: its annotation says
// so, or, if that is no boolean, nobody has changed the spec yet.
func autoupdate(o *meta.Object, annotation string) bool {
	update, err := strconv.ParseBool(o.Annotation(annotation))
	return update || err != nil && o.Generation() == 1
}

// apply makes a configuration of all objects.
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
	there := map[string]bool{}
	for _, o := range levels {
		there[o.Name()] = true
		config.Levels = append(config.Levels, level(o))
	}
	for _, l := range byDefault.Levels {
		if mandatory(l.Name) && !there[l.Name] {
			there[l.Name] = true
			config.Levels = append(config.Levels, l)
		}
	}
	for _, o := range schemas {
		if s := schema(o); there[s.Level] {
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

// Controller applies the objects when they change, makes those anew that have to be
// there, and tells of schemas whether their level is.
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
			return 0, f.tell(ctx, client)
		},
	}
}

// tell writes the condition of each schema that has another one.
func (f FlowControl) tell(ctx context.Context, client client.Client) error {
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
