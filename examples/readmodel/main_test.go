package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	ctx := context.Background()
	fmt.Println(run(ctx, memstore.New(memstore.Options{}), func(s *server.Server, rooms http.Handler) error {
		lamps := client.Of[Lamp](s.Conn(auth.User{Name: "electrician"}), lampKind)
		for name, room := range map[string]string{"desk": "attic", "floor": "hall"} {
			l := &Lamp{ObjectMeta: meta.ObjectMeta{Name: name}}
			l.Spec.Room, l.Spec.State = room, "off"
			if _, err := lamps.Create(ctx, l); err != nil {
				return err
			}
		}
		readers := httptest.NewServer(rooms)
		defer readers.Close()
		response, err := readers.Client().Get(readers.URL + "/rooms/attic")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		next := func() {
			lines.Scan()
			fmt.Println(lines.Text())
		}
		next()
		modify := func(name, room, state string) error {
			_, err := lamps.Modify(ctx, name, func(l *Lamp) error { l.Spec.Room, l.Spec.State = room, state; return nil })
			return err
		}
		if err := modify("desk", "attic", "on"); err != nil {
			return err
		}
		next()
		if err := modify("desk", "hall", "on"); err != nil {
			return err
		}
		next()
		return nil
	}))
	// Output:
	// /desk is off
	// /desk is on
	// /desk has left the room
	// <nil>
}
