package auth

import "strings"

// The prefix of service account user names, and the group of all service accounts.
const (
	serviceAccountPrefix = "system:serviceaccount:"
	ServiceAccounts      = "system:serviceaccounts"
)

// ServiceAccountUser returns the user name of a service account.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// ServiceAccountGroups returns the groups of the service accounts of a
// namespace, without system:authenticated.
func ServiceAccountGroups(namespace string) []string {
	return []string{ServiceAccounts, ServiceAccounts + ":" + namespace}
}

// SplitServiceAccount returns the namespace and name of a service account from its user
// name; ok reports whether user is a service account.
func SplitServiceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
