// Package controlplane is the map of the project; it holds no code.
//
// The project is a Kubernetes-style API server as a library: a program imports
// it, registers its kinds, picks a store, and gets an http.Handler that real
// clients work with.
//
//	b := &server.Builder{Authorizer: auth.AllowAll}
//	b.Register(registry.Of(registry.Definition[Widget]{Group: "example.com", Version: "v1", Kind: "Widget"}))
//	s, err := b.Build(ctx)
//	http.ListenAndServe("127.0.0.1:8080", s)
//
// # Where things are
//
//   - [orch.io/controlplane/server]: the Builder, and the way of every request:
//     who, whether, what. Below it flowcontrol, how callers share the server,
//     nodeagent, how it reaches the agents of nodes and what runs in pods,
//     access, the usual access control of a cluster in one call, serving, TLS and an
//     orderly end for a program of its own, and servertest, a server for a test, with users,
//     faults, crashes and a record of what was asked for.
//     What is below server/internal is its own: objects, the engine, objectcache,
//     the objects in memory that serve every read, with their selectors and encodings, controllers, fair, media, impersonate, openapi, the documents that
//     clients explain, check and patch by, conversion, which asks the webhooks of definitions,
//     aggregator, which knows the servers that APIServices name, and metered, which measures the
//     store.
//   - api: the vocabulary of all others: [orch.io/controlplane/api/meta] (objects,
//     Status), names (the naming table), features (which of a server's are on), schema
//     (shapes as data), check (what is wrong with an object).
//   - [orch.io/controlplane/registry]: what a kind is (Of, FromCRD). Below it the
//     built-in kinds, one package for each API group, and registrytest, the kit that
//     proves that objects come back from every version and form. What built-in kinds
//     imitate without need stands in internal/compat, and what their comments say, for
//     kubectl explain, in api/internal/comments.
//   - [orch.io/controlplane/apply]: patches and their creation, diffs, and field management
//     (server-side apply) as functions on objects and schemas.
//   - [orch.io/controlplane/client]: access to the objects of a server. Client is untyped, in the
//     process or over HTTP; Of is typed, over HTTP or an in-process transport. Controller,
//     with Feed and Index, runs in a server or outside; Cache and Election are for programs
//     outside. Below it kubeconfig: servers and credentials from kubeconfig files.
//   - [orch.io/controlplane/storage]: the contract of a store: bytes and
//     revisions. Below it badgerstore (a directory), memstore, faultinject (a store
//     that fails as a test wants it), storagetest, the kit that proves a store,
//     and backup, copies and backups.
//   - [orch.io/controlplane/watch]: lists, lists at an older revision and watches over any
//     store, from memory: CacheSet, Cache, Cursor, Feed. The server reads through it, and so
//     can a program with an API of another shape.
//   - [orch.io/controlplane/auth]: who calls and whether he may, and below it the
//     usual answers.
//   - [orch.io/controlplane/admission]: what a plugin is that changes or refuses
//     writes, and below it plugins, those of every server: a file each and a table, and
//     webhook, the two of them that ask webhooks.
//   - internal: what several packages share and programs need not name: resource, the
//     kinds of a server compiled for its names, with all that is done with an object on
//     its way to the store, codec, bytes to objects and back, manifests, objects in
//     files, inprocess, requests without a socket, webhookclient, calls of webhooks, services, how the server finds their endpoints, metrics, the classes of what /metrics shows, number, the exact comparison of JSON numbers, workqueue, keys that are due, reconcile, the loop of a controller, caches, keys and certificates.
//   - examples: apiserver (a complete server), envtest (the same in place of the
//     binaries that envtest starts), quickstart, versions, admission, auth, binary (a
//     server of one's own that kubectl works with), aggregated (one that a cluster passes a
//     group on to), harness, and in modules of their own
//     real clients, operators, policy engines and a store over SQLite. Their README.md
//     leads to the guides for who comes from elsewhere.
//
// # How to
//
// Each is one file of a program; what is shown is cut out of examples that run.
//
// A kind with two versions is two structs. One is the hub, of which the
// [orch.io/controlplane/registry.Definition] is and which hooks, admission and controllers see; a
// [orch.io/controlplane/registry.Spoke] says how objects of the other become it, and are made of it.
// Clients of either version see all objects. The whole is registry's example of Spoke;
// registrytest.RoundTrip finds what a version loses.
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
//		Lacks: []string{"status"},
//	}}
//
// The kind is registry.Of(d), for Register of the Builder.
//
// An admission plugin is an [orch.io/controlplane/admission.Plugin]: a name, rules that say which writes
// concern it, and a function that changes the object (Mutate) or one that refuses it
// (Validate). It is given to the Builder in Admission; AdmissionOptions choose and
// configure plugins by name. The whole is admission's example of Plugin.
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
// Controller in package client.
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
// One way only, also from folder to folder: server → admission → auth → client →
// watch → registry → apply → api; storage is below watch. The packages in internal stand for
// themselves, since what they share is only that programs do not see them: the compiled
// kinds (resource) are between server and registry, all others are below registry.
// Packages below storage, auth and admission implement what their parent defines, and
// what is below admission may use what is below auth, never the other way; the core
// imports none of them but memstore and the table of admission plugins. A test keeps this
// true, and that no name that goes on the wire stands outside api/names.
//
// # The way of a request
//
// Package server puts the parts together; each step is a package below server/internal.
//
// A GET: Server.ServeHTTP (server/serve.go) makes an exchange.Request and an
// exchange.Response, which parse the path and later write the body or the error. The
// door authenticates the user, gives the request a slot of the server's capacity, waits
// until the caches show the newest commit, and authorizes. Server.route (route.go) hands
// the request to the verbs, which resolve its version and media type. get (verbs/read.go)
// takes a seat and answers with the bytes of the entry, as views encodes it. Nothing is
// decoded. The response gives the seat back when it begins. A watch takes the same way to
// watchstream; proxy, discovery and health answer other paths, and requestmetrics counts
// all requests.
//
// A POST passes the same door. create (verbs/create.go) reads the body, takes a seat and
// decodes. The rest is the work of the engine, objects, which does not know HTTP:
// Store.Write (write.go) loads the live object, lets the verb make the new one (Mutate),
// prepares it (prepare.go: defaults, field ownership, admission, validation), commits and
// waits for the cache. If a kind has several versions, the engine and the caches work on
// objects of the hub version; they are converted for the caller (mutate.go, read.go) and
// for the store (records.go). PUT (verbs/update.go), PATCH and apply (verbs/patch.go)
// differ only in Mutate. DELETE takes the same way: it marks the object, or removes its
// record if nothing holds it. The steps collect the write's preconditions (namespace,
// definition, unique values, leadership), which the commit checks (precondition.go, commit.go). After a
// conflict the write starts over; writers of one object queue and share a commit (queue.go). The
// controllers (controllers) and the parts of a program use the same engine through its Client.
package controlplane
