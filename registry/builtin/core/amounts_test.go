package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAmountsOfResourcesAreRoundedToMilli compares amounts of resources, which have a precision of a
// thousandth, with plain quantities. White space is ignored.
func TestAmountsOfResourcesAreRoundedToMilli(t *testing.T) {
	quota, pod := kind(t, "ResourceQuota"), kind(t, "Pod")
	for given, want := range map[string][2]string{
		"1500u": {"2m", "1500u"}, "1n": {"1m", "1n"}, "0.123456789123": {"124m", "123456790n"}, "1e-9": {"1e-3", "1e-9"},
		"1.23456789Gi": {"1325607178061m", "1325607178060431360n"}, "100m": {"100m", "100m"}, " 5": {"5", "5"}, `5\t`: {"5", "5"},
		"1e19": {"10e18", "10e18"}, "9223372036854775808": {"9223372036854775808", "9223372036854775808"}, "9Ei": {"9223372036854775807", "9223372036854775807"},
	} {
		hard, _ := quota.Create(t, `{"spec":{"hard":{"memory":"`+given+`"}}}`)
		assert.Equal(t, want[0], hard.String("spec", "hard", "memory"), given)
		plain, _ := pod.Create(t, `{"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"`+given+`"}}],"containers":[{"name":"c","image":"i"}]}}`)
		assert.Equal(t, want[1], plain.Objects("spec", "volumes")[0].String("emptyDir", "sizeLimit"), given)
	}
}
