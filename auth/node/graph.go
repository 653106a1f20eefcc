package node

import (
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/podspec"
)

// object identifies an object in the graph.
type object struct {
	resource string
	key      meta.Key
}

// graph holds the objects that each node needs: its pods, the objects to which
// they refer, the volumes bound to their claims, and the secrets of these volumes. It
// has no lock: client.Index serializes apply with reads.
type graph struct {
	mirror   string // wire name of the annotation of mirror pods
	pods     map[meta.Key]podNeeds
	needs    map[string]map[object]int    // by node: the number of its pods that refer to the object
	volumes  map[string]volumeNeeds       // by name of the PersistentVolume
	bySecret map[meta.Key]map[string]bool // names of the volumes that refer to the secret
	ofNode   map[object]string            // spec.nodeName of VolumeAttachments and ResourceSlices
}

// podNeeds is the node of a pod, and the objects that the node needs for it.
type podNeeds struct {
	node    string
	objects []object
}

// volumeNeeds is the claim to which a volume is bound, and its secrets.
type volumeNeeds struct {
	claim   meta.Key
	secrets []meta.Key
}

func newGraph(mirror string) *graph {
	return &graph{
		mirror: mirror,
		pods:   map[meta.Key]podNeeds{}, needs: map[string]map[object]int{}, volumes: map[string]volumeNeeds{},
		bySecret: map[meta.Key]map[string]bool{}, ofNode: map[object]string{},
	}
}

// apply updates the graph for an event; c.Object is nil after a deletion.
func (g *graph) apply(c client.Event) {
	switch c.Resource.Resource {
	case pods:
		g.setPod(c.Key, c.Object)
	case volumes:
		g.setVolume(c.Key.Name, c.Object)
	case attachments, resourceSlices:
		g.setNode(object{c.Resource.Resource, c.Key}, c.Object)
	}
}

// has reports whether the node needs the object.
func (g *graph) has(node string, o object) bool {
	needs := g.needs[node]
	if needs[o] > 0 {
		return true
	}
	switch o.resource {
	case volumes:
		v, ok := g.volumes[o.key.Name]
		return ok && needs[object{claims, v.claim}] > 0
	case attachments, resourceSlices:
		n, ok := g.ofNode[o]
		return ok && n == node
	case secrets:
		for name := range g.bySecret[o.key] {
			if needs[object{claims, g.volumes[name].claim}] > 0 {
				return true
			}
		}
	}
	return false
}

func (g *graph) setPod(k meta.Key, o *meta.Object) {
	if old, ok := g.pods[k]; ok {
		delete(g.pods, k)
		for _, x := range old.objects {
			if g.needs[old.node][x]--; g.needs[old.node][x] == 0 {
				delete(g.needs[old.node], x)
			}
		}
		if len(g.needs[old.node]) == 0 {
			delete(g.needs, old.node)
		}
	}
	if o == nil || o.String("spec", "nodeName") == "" {
		return
	}
	p := podNeeds{node: o.String("spec", "nodeName"), objects: []object{{pods, k}}}
	// The node itself creates mirror pods, so their references must not give it
	// access to other objects.
	if _, mirror := o.Annotations()[g.mirror]; !mirror {
		for _, to := range podspec.References(o) {
			p.objects = append(p.objects, object{to.Resource, meta.Key{Namespace: k.Namespace, Name: to.Name}})
		}
	}
	g.pods[k] = p
	if g.needs[p.node] == nil {
		g.needs[p.node] = map[object]int{}
	}
	for _, x := range p.objects {
		g.needs[p.node][x]++
	}
}

func (g *graph) setVolume(name string, o *meta.Object) {
	for _, s := range g.volumes[name].secrets {
		if delete(g.bySecret[s], name); len(g.bySecret[s]) == 0 {
			delete(g.bySecret, s)
		}
	}
	delete(g.volumes, name)
	if o == nil || o.String("spec", "claimRef", "name") == "" {
		return
	}
	v := volumeNeeds{claim: meta.Key{Namespace: o.String("spec", "claimRef", "namespace"), Name: o.String("spec", "claimRef", "name")}}
	for _, source := range o.Map("spec") {
		if m, ok := source.(map[string]any); ok {
			v.secrets = append(v.secrets, volumeSecrets(meta.NewObject(m), v.claim.Namespace)...)
		}
	}
	g.volumes[name] = v
	for _, s := range v.secrets {
		if g.bySecret[s] == nil {
			g.bySecret[s] = map[string]bool{}
		}
		g.bySecret[s][name] = true
	}
}

// volumeSecrets returns the secrets in a volume source that a node needs. It omits
// secrets that only controllers need. namespace is the default.
func volumeSecrets(source *meta.Object, namespace string) []meta.Key {
	var out []meta.Key
	add := func(ns, name string) {
		if ns == "" {
			ns = namespace
		}
		if name != "" {
			out = append(out, meta.Key{Namespace: ns, Name: name})
		}
	}
	add(source.String("secretNamespace"), source.String("secretName"))
	for field := range source.Tree() {
		if strings.HasSuffix(strings.ToLower(field), "secretref") && !strings.HasPrefix(field, "controller") {
			add(source.String(field, "namespace"), source.String(field, "name"))
		}
	}
	return out
}

func (g *graph) setNode(k object, o *meta.Object) {
	if o == nil {
		delete(g.ofNode, k)
		return
	}
	g.ofNode[k] = o.String("spec", "nodeName")
}
