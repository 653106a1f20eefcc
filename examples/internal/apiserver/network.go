package apiserver

import (
	"flag"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"orch.io/controlplane/registry/builtin/core"
)

// networkFlags say what services get their addresses and ports from, and where that of
// the server leads.
type networkFlags struct {
	core.ServiceNetwork
	advertised netip.Addr // invalid if it was not said
}

func (f *networkFlags) define(set *flag.FlagSet) {
	set.Func("advertise-address", "address that others are told of the server (default: the one that it listens on)", func(text string) (err error) {
		f.advertised, err = netip.ParseAddr(text)
		return err
	})
	set.Func("service-cluster-ip-range", "network that services get their addresses from, CIDR, or one of each family, separated by a comma (default 10.0.0.0/24)", func(text string) (err error) {
		first, second, both := strings.Cut(text, ",")
		if f.Addresses, err = netip.ParsePrefix(first); err != nil || !both {
			return err
		}
		if f.Second, err = netip.ParsePrefix(second); err == nil && f.Second.Addr().Is6() == f.Addresses.Addr().Is6() {
			return fmt.Errorf("must be of two families")
		}
		return err
	})
	set.Func("service-node-port-range", "ports of the nodes that services get, first-last (default 30000-32767)", func(text string) (err error) {
		first, last, ok := strings.Cut(text, "-")
		if f.FirstPort, err = strconv.ParseInt(first, 10, 32); err != nil || !ok {
			return fmt.Errorf("must be first-last")
		}
		if f.LastPort, err = strconv.ParseInt(last, 10, 32); err != nil || f.FirstPort < 1 || f.LastPort > 65535 || f.LastPort < f.FirstPort {
			return fmt.Errorf("must be first-last, two ports")
		}
		return nil
	})
}
