// Command accept declares the present state of a database to be valid after the database lost commits
// or was restored from a copy, see sqlstore.Accept. Stop all servers before, and start them afterwards.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"orch.io/controlplane/examples/sqlstore"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o sqlstore.Options
	flags := flag.NewFlagSet("accept", flag.ContinueOnError)
	flags.StringVar(&o.File, "file", "", "path of an SQLite database")
	flags.StringVar(&o.Postgres, "postgres", "", "address of a PostgreSQL database")
	flags.StringVar(&o.Schema, "schema", "", "schema of the tables in PostgreSQL (default controlplane)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	begin, err := sqlstore.Accept(ctx, o)
	if err == nil {
		fmt.Printf("new commits begin at revision %d\n", begin)
	}
	return err
}
