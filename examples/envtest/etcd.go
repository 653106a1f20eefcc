package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// runEtcd answers health checks at the client URLs until a signal stops it. It stores nothing, so it
// accepts and ignores all other flags.
func runEtcd(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	urls := "http://localhost:2379"
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case arg == "--help" || arg == "-h":
			fmt.Println("etcd [--listen-client-urls URLS] answers /health, and stores nothing.")
			return flag.ErrHelp
		case name != "listen-client-urls":
		case ok:
			urls = value
		case i+1 < len(args):
			urls = args[i+1]
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"health":"true","reason":""}`)
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	failed := make(chan error)
	for text := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(text)
		if err != nil {
			return err
		}
		if u.Scheme != "http" {
			return fmt.Errorf("%s: only http is served", text)
		}
		l, err := net.Listen("tcp", u.Host)
		if err != nil {
			return err
		}
		go func() {
			if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
