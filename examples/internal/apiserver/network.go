package apiserver

import (
	"flag"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"orch.io/controlplane/registry/builtin/core"
)

// networkFlags configure the addresses and ports of Services, and the address that the server
// advertises.
type networkFlags struct {
	core.ServiceNetwork
	advertised netip.Addr // invalid if the flag was not given
}

func (f *networkFlags) define(set *flag.FlagSet) {
	set.Func("advertise-address", "address of the server that it advertises (default: the address that it listens on)", func(text string) (err error) {
		f.advertised, err = netip.ParseAddr(text)
		return err
	})
	set.Func("service-cluster-ip-range", "CIDR of the addresses of Services, or one CIDR of each IP family, separated by a comma (default 10.0.0.0/24)", func(text string) (err error) {
		first, second, both := strings.Cut(text, ",")
		if f.Addresses, err = netip.ParsePrefix(first); err != nil || !both {
			return err
		}
		if f.Second, err = netip.ParsePrefix(second); err == nil && f.Second.Addr().Is6() == f.Addresses.Addr().Is6() {
			return fmt.Errorf("must be of different IP families")
		}
		return err
	})
	set.Func("service-node-port-range", "range of the node ports of Services, first-last (default 30000-32767)", func(text string) (err error) {
		first, last, ok := strings.Cut(text, "-")
		if f.FirstPort, err = strconv.ParseInt(first, 10, 32); err != nil || !ok {
			return fmt.Errorf("must be first-last")
		}
		if f.LastPort, err = strconv.ParseInt(last, 10, 32); err != nil || f.FirstPort < 1 || f.LastPort > 65535 || f.LastPort < f.FirstPort {
			return fmt.Errorf("must be first-last, two ports in ascending order")
		}
		return nil
	})
}
