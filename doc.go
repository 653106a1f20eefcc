// Package controlplane is the map of the project; it holds no code.
//
// The project is a Kubernetes-style API server as a library: a program imports
// it, registers its kinds, chooses a store, and gets an http.Handler that
// unmodified Kubernetes clients work with.
//
//	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
//	b.Register(registry.Of(registry.Definition[Widget]{Group: "example.com", Version: "v1", Kind: "Widget"}))
//	s, err := b.Build(ctx)
//	http.ListenAndServe("127.0.0.1:8080", s)
//
// The profile names.Kubernetes has the names on the wire that kubectl and client-go expect; the zero
// profile has the product's own names.
//
// # Where things are
//
//   - [orch.io/controlplane/server]: Builder and Server. Below it access, the usual
//     access control of a cluster in one call; serving, TLS and an orderly shutdown for
//     a program; flowcontrol, the configuration of API priority and fairness; nodeagent,
//     connections to node agents and pods; and servertest, a server for tests, with
//     users, faults, crashes and recorded requests. The parts of the server are below
//     server/internal, see "The way of a request".
//   - [orch.io/controlplane/admission]: the interface of plugins that change or refuse
//     writes. Below it plugins, the built-in ones, and webhook, the two that call
//     webhooks.
//   - [orch.io/controlplane/auth]: the interfaces of authentication, authorization and
//     audit. The packages below it implement them: rbac, oidc, serviceaccount and others.
//   - [orch.io/controlplane/client]: access to the objects of a server, in process or
//     over HTTP: Client (untyped), Objects (typed), Cache, Controller, Election. Below it
//     kubeconfig, which reads client configurations.
//   - [orch.io/controlplane/watch]: lists, lists at an older revision and watches over any
//     store, from memory, in bytes and keys. The server reads through it, and so can a
//     program with an API of another shape.
//   - [orch.io/controlplane/storage]: the contract of a store: bytes and revisions. Below
//     it the stores memstore, badgerstore (a directory) and etcdstore (a module of its
//     own), backup (backups and copies) and storagetest, which tests a store against the
//     contract.
//   - [orch.io/controlplane/registry]: the definition of a kind, from a Go struct (Of) or a
//     CustomResourceDefinition (FromCRD). Below it builtin, one package for each API group;
//     convert, which converts manifests; and registrytest, which tests conversions.
//   - [orch.io/controlplane/apply]: patches and their creation, diffs, and field management
//     (server-side apply), as functions on objects and schemas.
//   - api: the types that all packages share: [orch.io/controlplane/api/meta] (objects,
//     Status, selectors), schema (the shape of a version as data), names (the names on the
//     wire), check (validation errors) and features (feature gates).
//   - internal: packages that several others share and programs do not need. resource
//     compiles the kinds for the names of one server; codec encodes and decodes objects;
//     cel evaluates expressions; webhookclient calls webhooks; reconcile and workqueue run
//     controllers; compat lists behaviour of kube-apiserver that the API specification does not
//     require; consistency carries the freshness of reads and the fence of a leader in contexts.
//   - examples: apiserver (a complete server), envtest (a replacement for envtest's
//     binaries), quickstart and a program for most topics; those that need other
//     dependencies are modules of their own. examples/README.md lists them.
//
// # How to
//
// The code of this section comes from examples that run as tests.
//
// A kind with two versions consists of two structs. The [orch.io/controlplane/registry.Definition]
// describes the hub version, which hooks, admission and controllers work with. A
// [orch.io/controlplane/registry.Spoke] converts the other version to the hub and back. Clients of
// either version see all objects. The complete program is the example of Spoke in
// registry/example_test.go;
// registrytest.RoundTrip reports fields that a conversion loses.
//
//	var lamp = registry.Definition[Lamp]{
//		Group: "example.com", Version: "v1", Scope: registry.Cluster, Status: true, ShortNames: []string{"lp"},
//	}
//
//	d := lamp
//	d.Versions = []registry.VersionOf[Lamp]{registry.Spoke[LampV1alpha1, Lamp]{
//		Version: "v1alpha1",
//		ToHub: func(in *LampV1alpha1, out *Lamp) error {
//			out.Spec.Lit = in.Switched == "on"
//			return nil
//		},
//		FromHub: func(in *Lamp, out *LampV1alpha1) error {
//			out.Switched = map[bool]string{true: "on", false: "off"}[in.Spec.Lit]
//			return nil
//		},
//		MissingSubresources: []string{"status"},
//	}}
//
// Pass the kind, registry.Of(d), to Builder.Register.
//
// An admission plugin is an [orch.io/controlplane/admission.Plugin]: a name, rules that select
// writes, and a function that changes the object (Mutate) or checks it (Validate). Pass it to the
// Builder in Admission; AdmissionOptions enable and configure plugins by name. The complete program
// is the example of Plugin in admission/example_test.go.
//
//	rooms := admission.Plugin{
//		Name: "Rooms",
//		Rules: []admission.Rule{{
//			Operations: []admission.Operation{admission.Create, admission.Update},
//			Groups:     []string{"example.com"}, Resources: []string{"lamps"},
//		}},
//		Validate: func(_ context.Context, r *admission.Request) error {
//			if r.Object.String("spec", "room") == "attic" {
//				return errors.New("no lamps in the attic") // 403 with this text
//			}
//			return nil
//		},
//	}
//
// A controller is a [orch.io/controlplane/client.Controller]: it maps changes to keys and
// reconciles one key at a time. Pass it to the Builder in Controllers; it runs while Run of the
// server runs. client.Run runs it outside of the server. The complete program is the example of
// Controller in client/controller_example_test.go. To work with the Go struct of a kind instead of
// a tree, convert it with a schema.View.
//
//	saver := client.Controller{
//		Name:  "saver",
//		Types: []meta.GroupResource{beacons},
//		MapEvent: func(e client.Event) []string {
//			if e.Object == nil || !e.Object.Bool("spec", "lit") {
//				return nil
//			}
//			return []string{e.Key.Name}
//		},
//		Reconcile: func(ctx context.Context, c client.Client, name string) (time.Duration, error) {
//			_, err := c.Update(ctx, beacons, meta.Key{Name: name}, "", func(o *meta.Object) error {
//				o.Set(false, "spec", "lit")
//				return nil
//			})
//			return 0, err // after an error, the key is reconciled again
//		},
//	}
//	b := &server.Builder{Authorizer: auth.AllowAll, Controllers: []client.Controller{saver}}
//
// # How imports run
//
// A package may import packages to its right: server → admission → client → registry →
// apply → api/schema → api/check, auth, watch → api/features, api/meta, storage → api/names. Each package in internal
// has its own layer: resource is between server and registry, most others are below
// registry. Packages below storage, auth and admission implement the interfaces of their
// parent. Packages below admission may import packages below auth, not the other way round.
// Of these implementations the server imports only memstore and the table of admission
// plugins. Tests in the root enforce this, and that names on the wire
// are defined in internal/wellknown and translated by api/names.
//
// # The way of a request
//
// Package server puts the parts together; each step is a package below server/internal.
//
// A GET: Server.ServeHTTP (server/serve.go) makes an exchange.Request and an
// exchange.Response, which parse the path and later write the body or the error. The
// door authenticates the user, gives the request a slot of the server's capacity, waits
// until the caches show the newest commit, and authorizes. Server.route (route.go) hands
// the request to the verbs, which resolve its version and media type. Handler.Serve (verbs/handler.go)
// takes a seat, the right to execute, and get (verbs/read.go) answers with the bytes of the
// entry, as views encodes it. Nothing is decoded. The response gives the seat back when it begins. A watch takes the same way to
// watchstream; proxy, discovery and health answer other paths, and requestmetrics counts
// all requests.
//
// A POST passes the same door. create (verbs/create.go) reads the body, takes a seat and
// decodes. The rest is the work of the engine, objects, which does not know HTTP:
// Store.Write (write.go) loads the live object, lets the verb make the new one (Mutate),
// prepares it (admit.go: defaults, field ownership, mutating
// admission; prepare.go: hooks, allocation, validation, validating admission), commits and
// waits for the cache. If a kind has several versions, the engine and the caches work on
// objects of the hub version; they are converted for the caller (mutate.go, read.go) and
// for the store (records.go). PUT (verbs/update.go), PATCH and apply (verbs/patch.go)
// differ only in Mutate. DELETE takes the same way: it marks the object, or removes its
// record if nothing holds it. The steps collect the write's preconditions (namespace,
// definition, unique values, leadership), which the commit checks (precondition.go, commit.go). After a
// conflict the write starts over; writers of one object queue and share a commit (queue.go). The
// controllers (controllers) and the parts of a program use the same engine through its Client.
package controlplane
