package auth

import "strings"

// The identities of service accounts: the prefix of their user names, and the
// group that all of them are in.
const (
	serviceAccountPrefix = "system:serviceaccount:"
	ServiceAccounts      = "system:serviceaccounts"
)

// ServiceAccountUser returns the user name of a service account.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// ServiceAccountGroups returns the groups of the service accounts of a
// namespace, beside system:authenticated.
func ServiceAccountGroups(namespace string) []string {
	return []string{ServiceAccounts, ServiceAccounts + ":" + namespace}
}

// SplitServiceAccount takes the user name of a service account apart; ok is
// false for any other user.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
