package servertest_test

import (
	"fmt"
	"net/http"
	"testing"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/servertest"
)

// In a real test, t is the argument of the test function.
func ExampleNew() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		res, err := s.Client().Get(s.Host() + "/api/v1/namespaces/default")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode == http.StatusOK)
	})
	// Output: true
}

// Fill a server, and fork it for each subtest.
func ExampleServer_Fork() {
	test(func(t testing.TB) {
		seeded := servertest.New(t)
		namespaces := meta.GroupResource{Resource: "namespaces"}
		team := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}})
		if _, err := seeded.Objects().Create(t.Context(), namespaces, team); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			fork := seeded.Fork(t)
			own := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "own-" + name}})
			if _, err := fork.Objects().Create(t.Context(), namespaces, own); err != nil {
				t.Fatal(err)
			}
			list, err := fork.Objects().List(t.Context(), namespaces, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, ns := range list[len(list)-2:] {
				fmt.Println(ns.Name())
			}
		}
	})
	// Output:
	// own-a
	// team
	// own-b
	// team
}

// Settle waits until the deleted namespace is gone.
func ExampleServer_Settle() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		for _, step := range [][2]string{{"POST", ""}, {"DELETE", "/team"}, {"GET", "/team"}} {
			res := send(t, t.Context(), s.Client(), step[0], s.Host()+"/api/v1/namespaces"+step[1], body(step[0]))
			res.Body.Close()
			s.Settle()
			fmt.Println(step[0], res.StatusCode)
		}
	})
	// Output:
	// POST 201
	// DELETE 200
	// GET 404
}

func body(method string) string {
	if method == "POST" {
		return `{"metadata":{"name":"team"}}`
	}
	return ""
}
