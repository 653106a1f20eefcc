package replicas_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const cidrs = "/apis/networking.k8s.io/v1/servicecidrs"

func serviceCIDR(name, cidr string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"cidrs":["` + cidr + `"]}}`
}

// ready returns the condition of a network for services.
func ready(t *testing.T, s *servertest.Server, name string) string {
	var words string
	for _, c := range apitest.Must(t, s, 200, "GET", cidrs+"/"+name, "").Objects("status", "conditions") {
		words += c.String("type") + "=" + c.String("status") + c.String("reason")
	}
	return words
}

// TestUsedServiceCIDRIsNotDeleted: the ServiceCIDR of the server exists from the start, further
// ServiceCIDRs provide further addresses, and no ServiceCIDR is deleted while a service has an
// address that no other ServiceCIDR contains.
func TestUsedServiceCIDRIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Kind("", "Service").Allocator = core.ServiceNetwork{Addresses: netip.MustParsePrefix("10.5.0.0/30")}.Pool()
	})
	require.Equal(t, []string{"10.5.0.0/30"}, apitest.Must(t, s, 200, "GET", cidrs+"/kubernetes", "").Strings("spec", "cidrs"))
	require.Equal(t, "Ready=True", ready(t, s, "kubernetes"))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", ""))
	apitest.Must(t, s, 500, "POST", apitest.ServicesPath, apitest.NewService("b", ""))
	apitest.Must(t, s, 422, "POST", apitest.ServicesPath, apitest.NewService("b", `,"clusterIP":"10.6.0.1"`))

	apitest.Must(t, s, 201, "POST", cidrs, serviceCIDR("more", "10.6.0.0/29"))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("b", ""))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("c", `,"clusterIP":"10.6.0.6"`))
	s.Settle()
	require.Equal(t, "Ready=True", ready(t, s, "more"))

	apitest.Must(t, s, 200, "DELETE", cidrs+"/more", "")
	apitest.Must(t, s, 500, "POST", apitest.ServicesPath, apitest.NewService("d", ""))
	apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/b", "")
	s.Settle()
	require.Equal(t, "Ready=FalseTerminating", ready(t, s, "more"), "c has an address of it")
	apitest.Must(t, s, 201, "POST", cidrs, serviceCIDR("most", "10.6.0.0/16"))
	s.Settle()
	apitest.Must(t, s, 404, "GET", cidrs+"/more", "")

	apitest.Must(t, s, 200, "DELETE", cidrs+"/most", "")
	s.Settle()
	require.Equal(t, "Ready=FalseTerminating", ready(t, s, "most"))
	apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/c", "")
	s.Settle()
	apitest.Must(t, s, 404, "GET", cidrs+"/most", "")
}

// TestDeletedServerNetworkIsCreatedAgain: the ServiceCIDR of the server provides no addresses
// while it is being deleted, and is created again.
func TestDeletedServerNetworkIsCreatedAgain(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", ""))
	apitest.Must(t, s, 200, "DELETE", cidrs+"/kubernetes", "")
	s.Settle()
	require.Equal(t, "Ready=FalseTerminating", ready(t, s, "kubernetes"))
	apitest.Must(t, s, 500, "POST", apitest.ServicesPath, apitest.NewService("b", ""))
	apitest.Must(t, s, 201, "POST", cidrs, serviceCIDR("new", "10.7.0.0/24"))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("b", ""))
	apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/a", "")
	s.Settle()
	require.Equal(t, "Ready=True", ready(t, s, "kubernetes"))
}

// TestDualStackServicesGetAddressesByPolicy: with addresses of both families, a service gets the
// addresses that its policy requires, on create and on update.
func TestDualStackServicesGetAddressesByPolicy(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Kind("", "Service").Allocator = core.ServiceNetwork{
			Addresses: netip.MustParsePrefix("10.0.0.0/24"), Second: netip.MustParsePrefix("fd00:10::/112"),
		}.Pool()
	})
	const both, four, six, sixFour, none = "IPv4 IPv6", "IPv4", "IPv6", "IPv6 IPv4", "None"
	shows := func(o *meta.Object) (families, addresses string) {
		for i, f := range o.Strings("spec", "ipFamilies") {
			families += " "[:min(i, 1)] + f
		}
		for i, ip := range o.Strings("spec", "clusterIPs") {
			of := none
			if a, err := netip.ParseAddr(ip); err == nil {
				of = map[bool]string{true: six, false: four}[a.Is6()]
			}
			addresses += " "[:min(i, 1)] + of
		}
		return families, addresses
	}
	for _, c := range []struct{ name, spec, families, addresses, policy string }{
		{"plain", ``, four, four, "SingleStack"},
		{"prefer", `,"ipFamilyPolicy":"PreferDualStack"`, both, both, "PreferDualStack"},
		{"require", `,"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6"]`, sixFour, sixFour, "RequireDualStack"},
		{"six", `,"ipFamilies":["IPv6"]`, six, six, "SingleStack"},
		{"wish", `,"clusterIP":"fd00:10::77"`, six, six, "SingleStack"},
		{"wishes", `,"ipFamilyPolicy":"PreferDualStack","clusterIP":"fd00:10::78"`, sixFour, sixFour, "PreferDualStack"},
		{"headless", `,"clusterIP":"None"`, both, none, "RequireDualStack"},
		{"selects", `,"clusterIP":"None","selector":{"a":"b"}`, four, none, "SingleStack"},
		{"selectsboth", `,"clusterIP":"None","selector":{"a":"b"},"ipFamilyPolicy":"PreferDualStack"`, both, none, "PreferDualStack"},
	} {
		o := apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService(c.name, c.spec))
		families, addresses := shows(o)
		assert.Equal(t, []string{c.families, c.addresses, c.policy}, []string{families, addresses, o.String("spec", "ipFamilyPolicy")}, c.name)
	}
	for _, c := range []struct{ spec, want string }{
		{`,"ipFamilies":["IPv6","IPv4"]`, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`},
		{`,"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9","fd00:10::9"]`, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`},
		{`,"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9","fd01::5"]`, `spec.clusterIPs: Invalid value: ["10.0.0.9","fd01::5"]: failed to allocate IP fd01::5: the provided network does not match the current range`},
	} {
		assert.Equal(t, `Service "x" is invalid: `+c.want, apitest.Must(t, s, 422, "POST", apitest.ServicesPath, apitest.NewService("x", c.spec)).String("message"))
	}
	first := apitest.Must(t, s, 200, "GET", apitest.ServicesPath+"/plain", "").String("spec", "clusterIP")
	for _, c := range []struct{ patch, families string }{
		{`{"ipFamilyPolicy":"PreferDualStack"}`, both},
		{`{"ipFamilyPolicy":null,"ipFamilies":null,"clusterIPs":null}`, both},
		{`{"ipFamilyPolicy":"SingleStack"}`, four},
		{`{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}`, both},
		{`{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"],"clusterIPs":["` + first + `"]}`, four},
	} {
		o := apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/plain", `{"spec":`+c.patch+`}`)
		families, addresses := shows(o)
		assert.Equal(t, []string{c.families, c.families, first}, []string{families, addresses, o.String("spec", "clusterIP")}, c.patch)
	}
	for _, c := range []struct{ patch, want string }{
		{`{"ipFamilies":["IPv4"]}`, `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary IP family`},
		{`{"clusterIPs":["10.0.0.9"],"clusterIP":"10.0.0.9"}`, `spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be 'SingleStack' to release the secondary cluster IP`},
	} {
		assert.Equal(t, `Service "prefer" is invalid: `+c.want, apitest.Must(t, s, 422, "PATCH", apitest.ServicesPath+"/prefer", `{"spec":`+c.patch+`}`).String("message"))
	}
}

// TestServiceKeepsBothAddresses: a Service keeps both of its addresses, and naming an address of
// another Service does not cause endless retries.
func TestServiceKeepsBothAddresses(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Kind("", "Service").Allocator = core.ServiceNetwork{Addresses: netip.MustParsePrefix("10.5.0.0/24"), Second: netip.MustParsePrefix("fd00:10::/112")}.Pool()
	})
	both := `,"ipFamilyPolicy":"RequireDualStack"`
	a := apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", both)).Strings("spec", "clusterIPs")
	b := apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("b", both)).Strings("spec", "clusterIPs")
	require.Len(t, a, 2)
	for _, other := range []string{"2001:db8::1", "fd00:10::", "fd00:10::77", b[1]} {
		got := apitest.Must(t, s, 422, "PATCH", apitest.ServicesPath+"/a", `{"spec":{"clusterIPs":["`+a[0]+`","`+other+`"]}}`)
		assert.Equal(t, "spec.clusterIPs[1]", got.Objects("details", "causes")[0].String("field"), other)
	}
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/a", `{"spec":{"clusterIPs":["`+a[0]+`","`+a[1]+`"]}}`)
}

// TestNetworkOfTwoServiceCIDRs: a network gives addresses as long as one of its ServiceCIDRs is
// left.
func TestNetworkOfTwoServiceCIDRs(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) {
		b.Kind("", "Service").Allocator = core.ServiceNetwork{Addresses: netip.MustParsePrefix("10.5.0.0/24")}.Pool()
	})
	apitest.Must(t, s, 201, "POST", cidrs, `{"metadata":{"name":"again","finalizers":["example.com/stays"]},"spec":{"cidrs":["10.5.0.0/24"]}}`)
	apitest.Must(t, s, 200, "DELETE", cidrs+"/again", "")
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", ""))
}
